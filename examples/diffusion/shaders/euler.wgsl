// Guidance and one Euler step: x = x - STEP * (u + GUIDANCE * (v - u)).
//
// The first N numbers of the velocity are those with label (v), the next N those without (u). x is
// kept twice, once for each.

override N: u32;
override STEP: f32;
override GUIDANCE: f32;

@group(0) @binding(0) var<storage, read> velocity: array<f32>;
@group(0) @binding(1) var<storage, read_write> x: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= N) { return; }
    let u = velocity[N + id.x];
    let next = x[id.x] - STEP * (u + GUIDANCE * (velocity[id.x] - u));
    x[id.x] = next;
    x[N + id.x] = next;
}
