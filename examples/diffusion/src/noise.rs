//! The noise that a picture begins as: a pure function of seed and image number.
//!
//! Uniform numbers come from SplitMix64 (Steele, Lea, Flood: *Fast Splittable Pseudorandom Number
//! Generators*, 2014), normal ones from pairs of them by the Box–Muller transform. Each image has a
//! stream of its own, so the first picture of four is the one that is drawn alone.
//!
//! `assets/noise.f32`, with which the model is tested, was made by another generator.

use std::f64::consts::TAU;

use crate::model::PIXELS;

/// Standard normal noise for images 0 to `images`, [`PIXELS`] numbers each.
pub fn normal(seed: u64, images: usize) -> Vec<f32> {
    let mut noise = Vec::with_capacity(images * PIXELS);
    for image in 0..images {
        let mut numbers = SplitMix64 { state: mix(seed) ^ mix(!(image as u64)) };
        for _ in 0..PIXELS / 2 {
            // In (0, 1], so that the logarithm is finite.
            let radius = (-2.0 * (1.0 - numbers.uniform()).ln()).sqrt();
            let (sin, cos) = (TAU * numbers.uniform()).sin_cos();
            noise.extend([(radius * cos) as f32, (radius * sin) as f32]);
        }
    }
    noise
}

struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// In [0, 1), in steps of 2^-53.
    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gives_the_published_numbers_for_seed_1234567() {
        let mut numbers = SplitMix64 { state: 1_234_567 };
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([numbers.next(), numbers.next()], expected);
    }

    #[test]
    fn equal_seeds_give_equal_noise_and_others_do_not() {
        assert_eq!(normal(7, 2), normal(7, 2));
        assert_ne!(normal(7, 1), normal(8, 1));
        assert_ne!(normal(7, 2)[..PIXELS], normal(7, 2)[PIXELS..]);
    }

    #[test]
    fn an_image_has_the_same_noise_alone_and_among_others() {
        assert_eq!(normal(7, 1), normal(7, 4)[..PIXELS]);
    }

    #[test]
    fn the_noise_is_standard_normal() {
        let noise = normal(0, 1000);
        let count = noise.len() as f64;
        let mean = noise.iter().map(|&v| f64::from(v)).sum::<f64>() / count;
        let variance = noise.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / count;
        assert!(mean.abs() < 0.02, "{mean}");
        assert!((variance - 1.0).abs() < 0.03, "{variance}");
        let within = noise.iter().filter(|v| v.abs() < 1.0).count() as f64 / count;
        assert!((within - 0.6827).abs() < 0.01, "{within}");
    }
}
