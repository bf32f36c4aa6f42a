//! The reference sample that every engine must draw; `assets/README.md` says how it was made.

use crate::model::PIXELS;
use crate::sampler::Job;

const NOISE: &[u8] = include_bytes!("../assets/noise.f32");
const SAMPLE: &[u8] = include_bytes!("../assets/sample.f32");

/// Ten digits, 0 to 9.
pub fn job() -> Job {
    Job { labels: (0..10).collect(), noise: numbers(NOISE), steps: 20, guidance: 2.0 }
}

/// Fails unless `digits` are the reference sample, to 1e-4.
pub fn assert_sample(digits: &[f32]) {
    let sample = numbers(SAMPLE);
    assert_eq!((digits.len(), sample.len()), (10 * PIXELS, 10 * PIXELS));
    let distances = digits.iter().zip(&sample).map(|(a, b)| (a - b).abs());
    let worst = distances.fold(0.0, |a: f32, b| if b <= a { a } else { b });
    assert!(worst < 1e-4, "the largest difference from the sample is {worst}");
}

fn numbers(bytes: &[u8]) -> Vec<f32> {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|&word| f32::from_le_bytes(word)).collect()
}
