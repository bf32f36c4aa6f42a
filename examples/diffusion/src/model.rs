//! The model: a class-conditional rectified-flow transformer for 8×8 grey digits, on the CPU.
//!
//! This is the reference that the shaders are tested against, and what runs where there is no GPU.
//! Every matrix is row by row; a linear layer is `x @ w + b`.
//!
//! A digit is 16 tokens (the 4×4 grid of 2×2 patches) of 4 channels (the pixels of a patch), each in
//! about [-1, 1]. The network is asked for the velocity `noise - image` at a time `t`, where 1 is
//! all noise and 0 the image; the sampler (`crate::sampler`) integrates it.

use crate::weights::{Block, Linear, Weights};

pub const TOKENS: usize = 16;
pub const CHANNELS: usize = 4;
/// Numbers of one digit.
pub const PIXELS: usize = TOKENS * CHANNELS;
pub const WIDTH: usize = 64;
pub const HEADS: usize = 4;
/// Width of the perceptron's hidden layer.
pub const HIDDEN: usize = 256;
pub const BLOCKS: usize = 3;
/// The digits 0 to 9 and [`NO_LABEL`].
pub const LABELS: usize = 11;
/// The label that stands for "any digit", used for guidance.
pub const NO_LABEL: usize = 10;

const HEAD_WIDTH: usize = WIDTH / HEADS;

/// 32 sines, then 32 cosines, of `100 t / 1000^(i/32)`.
pub fn time_features(t: f32) -> [f32; WIDTH] {
    let mut features = [0.0; WIDTH];
    for i in 0..WIDTH / 2 {
        let frequency = (-(1000_f32.ln()) * i as f32 / (WIDTH / 2) as f32).exp();
        let (sin, cos) = (t * 1000.0 * frequency / 10.0).sin_cos();
        (features[i], features[WIDTH / 2 + i]) = (sin, cos);
    }
    features
}

impl Weights {
    /// What modulates every block: one vector for a time and a label.
    pub fn conditioning(&self, t: f32, label: usize) -> Vec<f32> {
        let mut c = self.time1.apply(&time_features(t));
        c.iter_mut().for_each(|v| *v = silu(*v));
        let mut c = self.time2.apply(&c);
        add(&mut c, &self.labels[label * WIDTH..][..WIDTH]);
        c.iter_mut().for_each(|v| *v = silu(*v));
        c
    }

    /// The network: one noisy digit `x` ([`PIXELS`]) under a [conditioning](Self::conditioning) →
    /// its velocity, of the same shape.
    pub fn velocity(&self, x: &[f32], conditioning: &[f32]) -> Vec<f32> {
        let mut h = self.input.apply(x);
        add(&mut h, &self.places);
        for block in &self.blocks {
            block.apply(&mut h, conditioning);
        }
        let modulation = self.out_modulation.apply(conditioning);
        self.out.apply(&modulated_norm(&h, &modulation))
    }
}

impl Block {
    /// Attention, then the perceptron; each normalised before, gated and added after.
    fn apply(&self, h: &mut [f32], conditioning: &[f32]) {
        let modulation = self.modulation.apply(conditioning);
        let (attend, think) = modulation.split_at(3 * WIDTH);

        let qkv = self.qkv.apply(&modulated_norm(h, attend));
        let update = self.projection.apply(&attention(&qkv));
        add_gated(h, &attend[2 * WIDTH..], &update);

        let mut hidden = self.up.apply(&modulated_norm(h, think));
        hidden.iter_mut().for_each(|v| *v = gelu(*v));
        add_gated(h, &think[2 * WIDTH..], &self.down.apply(&hidden));
    }
}

impl Linear {
    /// Rows of `inputs` numbers → as many rows of `outputs` numbers.
    fn apply(&self, x: &[f32]) -> Vec<f32> {
        let mut y = Vec::with_capacity(x.len() / self.inputs * self.outputs);
        for row in x.chunks_exact(self.inputs) {
            let begin = y.len();
            y.extend_from_slice(&self.b);
            for (x, w) in row.iter().zip(self.w.chunks_exact(self.outputs)) {
                for (y, w) in y[begin..].iter_mut().zip(w) {
                    *y += x * w;
                }
            }
        }
        y
    }
}

/// Normalises each row by its mean and variance; `modulation` begins with scale, then shift.
fn modulated_norm(h: &[f32], modulation: &[f32]) -> Vec<f32> {
    let (scale, shift) = (&modulation[..WIDTH], &modulation[WIDTH..2 * WIDTH]);
    let mut normal = Vec::with_capacity(h.len());
    for row in h.chunks_exact(WIDTH) {
        let mean = row.iter().sum::<f32>() / WIDTH as f32;
        let variance = row.iter().map(|v| (v - mean) * (v - mean)).sum::<f32>() / WIDTH as f32;
        let inverse = 1.0 / (variance + 1e-6).sqrt();
        let modulate = |((v, scale), shift): ((&f32, &f32), &f32)| {
            (v - mean) * inverse * (1.0 + scale) + shift
        };
        normal.extend(row.iter().zip(scale).zip(shift).map(modulate));
    }
    normal
}

/// `[TOKENS, 3 * WIDTH]`, that is queries, keys and values side by side → `[TOKENS, WIDTH]`.
fn attention(qkv: &[f32]) -> Vec<f32> {
    let part = |token: usize, which: usize, head: usize| {
        &qkv[token * 3 * WIDTH + which * WIDTH + head * HEAD_WIDTH..][..HEAD_WIDTH]
    };
    let mut out = vec![0.0; TOKENS * WIDTH];
    for head in 0..HEADS {
        for i in 0..TOKENS {
            let mut scores = [0.0_f32; TOKENS];
            for (j, score) in scores.iter_mut().enumerate() {
                *score = dot(part(i, 0, head), part(j, 1, head)) / (HEAD_WIDTH as f32).sqrt();
            }
            softmax(&mut scores);
            let out = &mut out[i * WIDTH + head * HEAD_WIDTH..][..HEAD_WIDTH];
            for (j, weight) in scores.iter().enumerate() {
                for (out, value) in out.iter_mut().zip(part(j, 2, head)) {
                    *out += weight * value;
                }
            }
        }
    }
    out
}

fn softmax(scores: &mut [f32]) {
    let greatest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    scores.iter_mut().for_each(|score| *score = (*score - greatest).exp());
    let sum: f32 = scores.iter().sum();
    scores.iter_mut().for_each(|score| *score /= sum);
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(to: &mut [f32], what: &[f32]) {
    to.iter_mut().zip(what).for_each(|(to, what)| *to += what);
}

fn add_gated(h: &mut [f32], gate: &[f32], update: &[f32]) {
    for (h, update) in h.chunks_exact_mut(WIDTH).zip(update.chunks_exact(WIDTH)) {
        h.iter_mut().zip(gate).zip(update).for_each(|((h, gate), update)| *h += gate * update);
    }
}

fn silu(x: f32) -> f32 {
    x / (1.0 + (-x).exp())
}

/// The tanh form.
fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + (0.797_884_6 * (x + 0.044_715 * x * x * x)).tanh())
}
