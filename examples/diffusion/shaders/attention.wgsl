// y = softmax(q kᵀ / 4) v for heads of width 16 = 4 × vec4, with a streaming softmax.
//
// A row of qkv holds queries, keys and values of all heads. One invocation computes one query of one
// head: it goes through the keys once and keeps the greatest score, the sum of weights and the
// weighted values, all rescaled whenever a greater score comes.

override BATCH: u32;
override TOKENS: u32;
override HEADS: u32;

@group(0) @binding(0) var<storage, read> qkv: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= BATCH * HEADS * TOKENS) { return; }
    let token = id.x % TOKENS;
    let head = (id.x / TOKENS) % HEADS;
    let image = id.x / (TOKENS * HEADS);
    let width = HEADS * 4u;
    let stride = 3u * width;

    let q = (image * TOKENS + token) * stride + head * 4u;
    let q0 = qkv[q] * 0.25;
    let q1 = qkv[q + 1u] * 0.25;
    let q2 = qkv[q + 2u] * 0.25;
    let q3 = qkv[q + 3u] * 0.25;

    var greatest = -3e38;
    var sum = 0.0;
    var v0 = vec4<f32>(0.0);
    var v1 = v0;
    var v2 = v0;
    var v3 = v0;
    for (var other = 0u; other < TOKENS; other++) {
        let k = (image * TOKENS + other) * stride + width + head * 4u;
        let v = k + width;
        let score = dot(q0, qkv[k]) + dot(q1, qkv[k + 1u]) + dot(q2, qkv[k + 2u]) + dot(q3, qkv[k + 3u]);
        let next = max(greatest, score);
        let rescale = exp(greatest - next);
        let weight = exp(score - next);
        greatest = next;
        sum = sum * rescale + weight;
        v0 = v0 * rescale + weight * qkv[v];
        v1 = v1 * rescale + weight * qkv[v + 1u];
        v2 = v2 * rescale + weight * qkv[v + 2u];
        v3 = v3 * rescale + weight * qkv[v + 3u];
    }
    let at = (image * TOKENS + token) * width + head * 4u;
    y[at] = v0 / sum;
    y[at + 1u] = v1 / sum;
    y[at + 2u] = v2 / sum;
    y[at + 3u] = v3 / sum;
}
