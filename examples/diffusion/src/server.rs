//! The life of a request: queue, prompt, device, picture.

use stagetrace::{Traced, stage};
use thiserror::Error;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::device::{Device, DeviceError};
use crate::noise;
use crate::picture::{self, PngError};
use crate::prompt::{self, PromptError};
use crate::request::{DiffStage, GenerateRequest};
use crate::sampler::Job;

/// Requests that are at work at a time: one on the device, and the next one ready for it.
const AT_WORK: usize = 2;

/// Answers requests, first come, first served.
pub struct Server {
    device: Device,
    /// Free places; who waits for one stands in the queue.
    places: Semaphore,
}

/// What a request brings.
#[derive(Debug)]
pub struct Answer {
    /// `model::PIXELS` numbers for each image.
    pub digits: Vec<f32>,
    /// The images side by side.
    pub png: Vec<u8>,
}

/// Why a request failed.
#[derive(Debug, Error)]
pub enum GenerateError {
    #[error(transparent)]
    Prompt(#[from] PromptError),
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    Png(#[from] PngError),
    #[error("the server panicked")]
    Panicked,
}

impl Server {
    pub fn new(device: Device) -> Self {
        Server { device, places: Semaphore::new(AT_WORK) }
    }

    /// Answers one request: from here to the answer is its trace.
    pub async fn generate(&self, mut request: GenerateRequest) -> Result<Answer, GenerateError> {
        request.begin(None);
        let result = self.answer(&request).await;
        request.finish(&result);
        result
    }

    /// Ends the device's thread, after the jobs it has.
    pub fn stop(self) {
        self.device.stop();
    }

    async fn answer(&self, request: &GenerateRequest) -> Result<Answer, GenerateError> {
        let _place = self.queue_wait(request).await;
        let job = encode_prompt(request)?;
        let digits = self.dispatch(request, job).await?;
        let png = decode(request, &digits)?;
        Ok(Answer { digits, png })
    }

    #[stage(DiffStage::QueueWait, request)]
    async fn queue_wait(&self, request: &GenerateRequest) -> SemaphorePermit<'_> {
        self.places.acquire().await.expect("nobody closes it")
    }

    #[stage(DiffStage::SchedulerDispatch, request)]
    async fn dispatch(&self, request: &GenerateRequest, job: Job) -> Result<Vec<f32>, DeviceError> {
        self.device.run(job).await
    }
}

/// The prompt's digit and the seed's noise.
#[stage(DiffStage::EncodePrompt, request)]
fn encode_prompt(request: &GenerateRequest) -> Result<Job, PromptError> {
    let label = prompt::parse(&request.prompt)?;
    stagetrace::set_attribute("diffusion.label", label);
    Ok(Job {
        labels: vec![label; request.images as usize],
        noise: noise::normal(request.seed, request.images as usize),
        steps: request.steps,
        guidance: request.guidance,
    })
}

#[stage(DiffStage::Decode, request)]
fn decode(request: &GenerateRequest, digits: &[f32]) -> Result<Vec<u8>, PngError> {
    picture::png(digits)
}
