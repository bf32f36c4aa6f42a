//! One run of the program: requests out, pictures in, and what the trace says of it.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::{fs, iter};

use thiserror::Error;
use tokio::runtime;

use crate::cli::Cli;
use crate::device::{Device, Kind, REMEDY, StartError};
use crate::gpu::NoGpu;
use crate::model::PIXELS;
use crate::picture;
use crate::progress::Progress;
use crate::prompt::{self, PromptError};
use crate::request::GenerateRequest;
use crate::server::{Answer, GenerateError, Server};
use crate::trace::Trace;
use crate::view::View;
use crate::weights::{Weights, WeightsError};

/// Pictures that are shown in the terminal; the files have them all.
const SHOWN: usize = 8;
/// Digits that stand side by side in 80 columns.
const SIDE_BY_SIDE: usize = 4;

/// Why a run failed.
#[derive(Debug, Error)]
pub enum AppError {
    #[error(transparent)]
    Prompt(#[from] PromptError),
    #[error(transparent)]
    Weights(#[from] WeightsError),
    #[error("{0}; {REMEDY}, and `--device cpu` needs none")]
    NoGpu(NoGpu),
    #[error(transparent)]
    Trace(#[from] stagetrace::InitError),
    #[error("showing the trace: {0}")]
    View(String),
    #[error(transparent)]
    Start(StartError),
    #[error("starting the server: {0}")]
    Runtime(io::Error),
    #[error("{failed} of {sent} requests failed, the first: {first}")]
    Failed { failed: usize, sent: usize, first: GenerateError },
    #[error("writing {}: {error}", path.display())]
    Picture { path: PathBuf, error: io::Error },
    #[error("writing to the terminal: {0}")]
    Terminal(io::Error),
}

impl AppError {
    /// 2 if the command line asked for what cannot be had, else 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            AppError::Prompt(_) | AppError::NoGpu(_) | AppError::Trace(_) => 2,
            _ => 1,
        }
    }
}

/// Does what the command line asks for.
pub fn run(cli: &Cli) -> Result<(), AppError> {
    prompt::parse(&cli.prompt())?; // before anything costly; the server reads it again
    let weights = match &cli.weights {
        Some(path) => Weights::read(path)?,
        None => Weights::bundled()?,
    };
    let progress = Progress::of(u64::from(cli.requests) * u64::from(cli.steps));
    let device = Device::start(cli.device, weights, &progress).map_err(|error| match error {
        StartError::NoGpu(why) => AppError::NoGpu(why),
        error => AppError::Start(error),
    })?;
    eprintln!("{}", device.kind);
    let trace = Trace::start(cli)?;
    let pages = cli.view.then(|| View::of(&trace)).transpose().map_err(AppError::View)?;
    progress.show();
    let results = answer(cli, device)?;
    progress.finish();
    let pictures = show(&results);
    let saved = save(cli, &results);
    print(&(pictures + &trace.finish()))?;
    let done = saved.and_then(|()| all_answered(results));
    if let Some(pages) = pages {
        if let Err(error) = &done {
            eprintln!("diffusion: {error}");
        }
        pages.stay();
    }
    done
}

/// Sends all requests at once and waits for their answers.
fn answer(cli: &Cli, device: Device) -> Result<Vec<Result<Answer, GenerateError>>, AppError> {
    let on_gpu = matches!(device.kind, Kind::Gpu(_));
    let requests = (0..cli.requests).map(|index| cli.request(index, on_gpu)).collect();
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .map_err(AppError::Runtime)?;
    let server = Arc::new(Server::new(device));
    let results = runtime.block_on(send_all(&server, requests));
    if let Some(server) = Arc::into_inner(server) {
        server.stop();
    }
    Ok(results)
}

async fn send_all(
    server: &Arc<Server>,
    requests: Vec<GenerateRequest>,
) -> Vec<Result<Answer, GenerateError>> {
    let send = |request: GenerateRequest| {
        let server = Arc::clone(server);
        tokio::spawn(async move { server.generate(request).await })
    };
    let sent: Vec<_> = requests.into_iter().map(send).collect();
    let mut results = Vec::with_capacity(sent.len());
    for task in sent {
        results.push(task.await.unwrap_or(Err(GenerateError::Panicked)));
    }
    results
}

/// The first pictures, as text.
fn show(results: &[Result<Answer, GenerateError>]) -> String {
    let answers = || results.iter().flatten();
    let mut text = String::new();
    for answer in answers().take(SHOWN) {
        for digits in answer.digits.chunks(SIDE_BY_SIDE * PIXELS) {
            text.extend(["\n", &picture::draw(digits)]);
        }
    }
    let hidden = answers().count().saturating_sub(SHOWN);
    if hidden > 0 {
        text.push_str(&format!("\nand {hidden} more requests\n"));
    }
    text
}

/// Writes each answer's picture; tries them all, and tells the first failure.
fn save(cli: &Cli, results: &[Result<Answer, GenerateError>]) -> Result<(), AppError> {
    let paths = (0..cli.requests).map(|index| cli.picture(index));
    let answers = iter::zip(paths, results);
    let write = |(path, result): (PathBuf, &Result<Answer, GenerateError>)| {
        let Ok(answer) = result else { return Ok(()) };
        fs::write(&path, &answer.png).map_err(|error| AppError::Picture { path, error })
    };
    answers.map(write).fold(Ok(()), Result::and)
}

fn all_answered(results: Vec<Result<Answer, GenerateError>>) -> Result<(), AppError> {
    let sent = results.len();
    let mut failures = results.into_iter().filter_map(Result::err);
    match failures.next() {
        None => Ok(()),
        Some(first) => Err(AppError::Failed { failed: 1 + failures.count(), sent, first }),
    }
}

fn print(text: &str) -> Result<(), AppError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(AppError::Terminal(error)),
        _ => Ok(()), // who reads it may stop reading it
    }
}
