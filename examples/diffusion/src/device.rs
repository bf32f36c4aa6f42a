//! The device as an actor: one thread owns the engine, jobs come through a bounded channel.
//!
//! Submitting and polling may block for as long as a job runs, and only one thread may poll a
//! device; so nobody else ever touches it. Whoever sends a job awaits the reply.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::{fmt, io};

use stagetrace::{Outcome, Position, Span, span};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

use crate::cpu::Cpu;
use crate::engine::{Engine, EngineError};
use crate::gpu::{AdapterFacts, Gpu, NoGpu};
use crate::progress::Progress;
use crate::request::DiffStage;
use crate::sampler::Job;
use crate::weights::Weights;

/// Jobs that may wait in the channel; more wait at its door.
const WAITING_JOBS: usize = 2;

/// What helps where no GPU is found.
pub const REMEDY: &str = "on Linux `apt install mesa-vulkan-drivers` brings a software GPU";

/// Which device is wanted. `Auto` is a GPU if there is one, else the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Choice {
    Auto,
    Gpu,
    Cpu,
}

/// Which device it became.
#[derive(Debug)]
pub enum Kind {
    Gpu(AdapterFacts),
    Cpu,
    /// The processor, for want of a GPU.
    CpuInstead(NoGpu),
}

/// A handle to the device's thread. Dropping it stops the thread after the jobs it has.
pub struct Device {
    pub kind: Kind,
    tasks: mpsc::Sender<Task>,
    thread: JoinHandle<()>,
}

/// A job on its way.
struct Task {
    job: Job,
    /// The span of its wait, which ends where the job is taken.
    waiting: Span,
    /// Where it belongs in the trace of its request.
    place: Position,
    /// Where its result goes.
    reply: oneshot::Sender<Result<Vec<f32>, EngineError>>,
}

/// Why there is no device.
#[derive(Debug, Error)]
pub enum StartError {
    #[error(transparent)]
    NoGpu(#[from] NoGpu),
    #[error("starting the device's thread: {0}")]
    Thread(#[from] io::Error),
}

/// Why a job brought nothing.
#[derive(Debug, Error)]
pub enum DeviceError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("the device's thread has ended")]
    Ended,
}

impl Device {
    /// Opens the device on a thread of its own.
    pub fn start(
        choice: Choice,
        weights: Weights,
        progress: &Progress,
    ) -> Result<Self, StartError> {
        let weights = Arc::new(weights);
        if choice == Choice::Cpu {
            return Self::cpu(weights, progress, Kind::Cpu);
        }
        match Self::gpu(Arc::clone(&weights), progress) {
            Err(StartError::NoGpu(why)) if choice == Choice::Auto => {
                Self::cpu(weights, progress, Kind::CpuInstead(why))
            }
            started => started,
        }
    }

    /// The digits of a job, once those before it are done.
    pub async fn run(&self, job: Job) -> Result<Vec<f32>, DeviceError> {
        let (reply, result) = oneshot::channel();
        let waiting = span!(DiffStage::GPU_QUEUE_WAIT.name(), level = 2);
        let task = Task { job, waiting, place: stagetrace::current(), reply };
        self.tasks.send(task).await.map_err(|_| DeviceError::Ended)?;
        Ok(result.await.map_err(|_| DeviceError::Ended)??)
    }

    /// Waits for the thread's end.
    pub fn stop(self) {
        drop(self.tasks);
        // A panic there has already been told, and has failed the job that met it.
        let _ = self.thread.join();
    }

    fn gpu(weights: Arc<Weights>, progress: &Progress) -> Result<Self, StartError> {
        Self::spawn("gpu", progress, move || {
            let gpu = Gpu::open(&weights)?;
            Ok((Kind::Gpu(gpu.facts.clone()), gpu))
        })
    }

    fn cpu(weights: Arc<Weights>, progress: &Progress, kind: Kind) -> Result<Self, StartError> {
        Self::spawn("cpu", progress, move || Ok((kind, Cpu::new(weights))))
    }

    /// The engine is made on the thread where it stays.
    fn spawn<E: Engine>(
        name: &str,
        progress: &Progress,
        open: impl FnOnce() -> Result<(Kind, E), NoGpu> + Send + 'static,
    ) -> Result<Self, StartError> {
        let (opened, answer) = std::sync::mpsc::sync_channel(1);
        let (tasks, waiting) = mpsc::channel(WAITING_JOBS);
        let progress = progress.clone();
        let thread = thread::Builder::new().name(name.into()).spawn(move || match open() {
            Ok((kind, engine)) => {
                if opened.send(Ok(kind)).is_ok() {
                    serve(engine, waiting, &progress);
                }
            }
            Err(error) => drop(opened.send(Err(error))),
        })?;
        let kind = answer.recv().map_err(|_| io::Error::other("it ended at once"))??;
        Ok(Device { kind, tasks, thread })
    }
}

/// The thread's life.
fn serve(mut engine: impl Engine, mut waiting: mpsc::Receiver<Task>, progress: &Progress) {
    while let Some(task) = waiting.blocking_recv() {
        if task.reply.is_closed() {
            task.waiting.end(Outcome::Cancelled); // who asked has gone
            continue;
        }
        drop(task.waiting);
        let result = {
            let _place = stagetrace::attach(task.place);
            engine.run(&task.job, progress)
        };
        let _ = task.reply.send(result);
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Gpu(facts) if facts.is_software() => {
                write!(f, "warning: {facts}: timings are those of a software rasteriser")
            }
            Kind::Gpu(facts) => write!(f, "running on {facts}"),
            Kind::Cpu => f.write_str("running on the processor"),
            Kind::CpuInstead(why) => {
                write!(f, "{why}, running on the processor instead ({REMEDY})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;

    /// An engine that gives back the noise, but fails where the guidance is 1 and panics where it
    /// is 2. It tells when a job has begun, and waits for leave to go on.
    struct Scripted {
        begun: std::sync::mpsc::Sender<()>,
        go_on: std::sync::mpsc::Receiver<()>,
    }

    impl Engine for Scripted {
        fn run(&mut self, job: &Job, _: &Progress) -> Result<Vec<f32>, EngineError> {
            let _ = self.begun.send(());
            let _ = self.go_on.recv();
            match job.guidance {
                1.0 => Err(EngineError::Lost("as asked".into())),
                2.0 => panic!("as asked"),
                _ => Ok(job.noise.clone()),
            }
        }
    }

    struct Script {
        device: Arc<Device>,
        begun: std::sync::mpsc::Receiver<()>,
        go_on: std::sync::mpsc::Sender<()>,
    }

    fn scripted() -> Script {
        let (tell, begun) = std::sync::mpsc::channel();
        let (go_on, wait) = std::sync::mpsc::channel();
        let engine = Scripted { begun: tell, go_on: wait };
        let device = Device::spawn("gpu", &Progress::hidden(), move || Ok((Kind::Cpu, engine)));
        Script { device: Arc::new(device.unwrap()), begun, go_on }
    }

    fn job(guidance: f32) -> Job {
        Job { guidance, ..golden::job() }
    }

    /// Runs `test` on two threads, so that a job can be under way while the test goes on.
    fn block_on<T>(test: impl Future<Output = T>) -> T {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.worker_threads(1).build().unwrap().block_on(test)
    }

    fn send(device: &Arc<Device>, guidance: f32) -> tokio::task::JoinHandle<Outcome> {
        let device = Arc::clone(device);
        tokio::spawn(async move { device.run(job(guidance)).await })
    }

    type Outcome = Result<Vec<f32>, DeviceError>;

    #[test]
    fn a_failed_job_fails_alone() {
        let Script { device, go_on, .. } = scripted();
        block_on(async {
            go_on.send(()).unwrap();
            go_on.send(()).unwrap();
            let failed = device.run(job(1.0)).await;
            assert!(matches!(failed, Err(DeviceError::Engine(EngineError::Lost(_)))));
            assert_eq!(device.run(job(0.0)).await.unwrap(), golden::job().noise);
        });
    }

    #[test]
    fn a_panic_of_the_engine_fails_its_job_and_those_that_wait() {
        let Script { device, begun, go_on } = scripted();
        block_on(async {
            let panics = send(&device, 2.0);
            begun.recv().unwrap();
            let waits = send(&device, 0.0);
            go_on.send(()).unwrap();
            for sent in [panics, waits] {
                assert!(matches!(sent.await.unwrap(), Err(DeviceError::Ended)));
            }
            assert!(matches!(device.run(job(0.0)).await, Err(DeviceError::Ended)));
        });
        Arc::into_inner(device).unwrap().stop();
    }

    #[test]
    fn a_job_whose_client_has_gone_is_not_run() {
        let Script { device, begun, go_on } = scripted();
        block_on(async {
            let runs = send(&device, 0.0);
            begun.recv().unwrap();
            let gone = send(&device, 0.0);
            for _ in 0..1_000_000 {
                if device.tasks.capacity() < WAITING_JOBS {
                    break; // it is in the channel
                }
                tokio::task::yield_now().await;
            }
            gone.abort();
            assert!(gone.await.unwrap_err().is_cancelled());
            let stays = send(&device, 0.0);
            go_on.send(()).unwrap();
            go_on.send(()).unwrap();
            assert!(runs.await.unwrap().is_ok());
            assert!(stays.await.unwrap().is_ok());
        });
        assert_eq!(begun.try_iter().count(), 1, "only that of the job that stayed");
    }

    #[test]
    fn stopping_waits_for_the_thread() {
        let Script { device, begun, .. } = scripted();
        Arc::into_inner(device).unwrap().stop();
        assert!(begun.recv().is_err(), "the engine is gone");
    }

    #[test]
    fn a_device_that_cannot_be_opened_says_why() {
        let opened = Device::spawn::<Cpu>("gpu", &Progress::hidden(), || Err(NoGpu::NotFound));
        assert!(matches!(opened, Err(StartError::NoGpu(NoGpu::NotFound))));
    }
}
