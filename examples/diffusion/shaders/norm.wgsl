// y = normalise(x) * (1 + scale) + shift, row by row. One invocation computes one row.
//
// Scale and shift lie side by side in the modulation of the row's image, scale first.

override M: u32;
override N: u32;
// Rows of one image; first column and row length of the modulation.
override ROWS: u32;
override COLUMN: u32;
override STRIDE: u32;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> modulation: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= M) { return; }
    let row = id.x * N;

    var sum = 0.0;
    for (var i = 0u; i < N; i++) { sum += x[row + i]; }
    let mean = sum / f32(N);

    var squares = 0.0;
    for (var i = 0u; i < N; i++) {
        let d = x[row + i] - mean;
        squares += d * d;
    }
    let inverse = inverseSqrt(squares / f32(N) + 1e-6);

    let scale = (id.x / ROWS) * STRIDE + COLUMN;
    let shift = scale + N;
    for (var i = 0u; i < N; i++) {
        let normal = (x[row + i] - mean) * inverse;
        y[row + i] = normal * (1.0 + modulation[scale + i]) + modulation[shift + i];
    }
}
