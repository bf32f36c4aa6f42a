//! On whatever adapter there is; in CI a software one.

use super::*;
use crate::{golden, noise};

/// The GPU, or `None` where there is none and none is required.
fn gpu() -> Option<Gpu> {
    match Gpu::open(&Weights::bundled().unwrap()) {
        Ok(gpu) => Some(gpu),
        Err(why) if std::env::var_os("REQUIRE_GPU").is_some_and(|value| value == "1") => {
            panic!("REQUIRE_GPU=1, but {why}")
        }
        Err(why) => {
            println!("skipped: {why}");
            None
        }
    }
}

fn job(seed: u64, images: usize) -> Job {
    let labels = (0..images).map(|image| image % 10).collect();
    Job { labels, noise: noise::normal(seed, images), steps: 5, guidance: 2.0 }
}

fn run(gpu: &mut Gpu, job: &Job) -> Vec<u32> {
    let digits = gpu.run(job, &Progress::hidden()).unwrap();
    digits.into_iter().map(f32::to_bits).collect()
}

#[test]
fn the_gpu_draws_the_golden_sample() {
    let Some(mut gpu) = gpu() else { return };
    let digits = gpu.run(&golden::job(), &Progress::hidden()).unwrap();
    golden::assert_sample(&digits);
}

#[test]
fn equal_seeds_give_equal_digits_to_the_bit_also_after_other_shapes() {
    let Some(mut gpu) = gpu() else { return };
    let first = run(&mut gpu, &job(3, 2));
    assert_eq!(run(&mut gpu, &job(3, 2)), first);
    assert_ne!(run(&mut gpu, &job(4, 2)), first);
    run(&mut gpu, &job(3, 1));
    assert_eq!(run(&mut gpu, &job(3, 2)), first);
}

#[test]
fn an_image_is_the_same_alone_and_in_the_largest_batch() {
    let Some(mut gpu) = gpu() else { return };
    let alone = run(&mut gpu, &job(3, 1));
    assert_eq!(run(&mut gpu, &job(3, 64))[..alone.len()], alone);
}

#[test]
fn a_job_that_is_refused_fails_and_the_next_one_works() {
    let Some(mut gpu) = gpu() else { return };
    // A buffer that no device has room for.
    let size = gpu.device.limits().max_buffer_size + 4;
    let usage = wgpu::BufferUsages::STORAGE;
    let desc = wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
    let _invalid = gpu.device.create_buffer(&desc);
    let refused = gpu.run(&job(3, 1), &Progress::hidden());
    assert!(matches!(&refused, Err(EngineError::Refused(why)) if !why.contains('\n')));
    run(&mut gpu, &job(3, 1));
}

#[test]
fn a_lost_device_fails_this_job_and_all_later_ones() {
    let Some(mut gpu) = gpu() else { return };
    run(&mut gpu, &job(3, 1));
    gpu.device.destroy();
    for _ in 0..2 {
        let lost = gpu.run(&job(3, 1), &Progress::hidden());
        assert!(matches!(lost, Err(EngineError::Lost(_))), "{lost:?}");
    }
}
