// y[M, N] = epilogue(x[M, K] w[K, N] + b). One invocation computes 4 columns of one row.
//
// All shapes are constants of the pipeline, so that the driver can unroll and need not recompile.
// There is no workgroup memory and no barrier: software rasterisers are slow at both.

override M: u32;
override N: u32;
override K: u32;

// 0 none, 1 gelu (tanh form), 2 silu.
override ACTIVATION: u32;

// 0 none, 1 y = base + v, 2 y = base + gate * v, where the gate is that of the row's image.
override RESIDUAL: u32;
// Rows of one image; first column and row length of the gates.
override ROWS: u32;
override GATE_COLUMN: u32;
override GATE_STRIDE: u32;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> w: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> base: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> gate: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> y: array<vec4<f32>>;

@compute @workgroup_size(16, 4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let n4 = N / 4u;
    let column = id.x;
    let row = id.y;
    if (column >= n4 || row >= M) { return; }

    var v = b[column];
    for (var k = 0u; k < K; k++) {
        v += x[row * K + k] * w[k * n4 + column];
    }
    if (ACTIVATION == 1u) {
        v = 0.5 * v * (1.0 + tanh(0.7978845608 * (v + 0.044715 * v * v * v)));
    } else if (ACTIVATION == 2u) {
        v = v / (1.0 + exp(-v));
    }
    let at = row * n4 + column;
    if (RESIDUAL == 1u) {
        v += base[at];
    } else if (RESIDUAL == 2u) {
        v = base[at] + gate[(row / ROWS) * (GATE_STRIDE / 4u) + GATE_COLUMN / 4u + column] * v;
    }
    y[at] = v;
}
