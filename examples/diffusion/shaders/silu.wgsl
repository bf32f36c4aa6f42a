// y = x / (1 + exp(-x)). One invocation computes one number.

override N: u32;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= N) { return; }
    y[id.x] = x[id.x] / (1.0 + exp(-x[id.x]));
}
