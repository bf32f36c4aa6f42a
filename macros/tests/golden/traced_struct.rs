#[derive(Traced)]
#[traced(name = "generate", stages = [Prefill, Decode], kind = server)]
struct Request<'a, T: Clone> {
    #[traced(id)]
    id: String,
    #[traced(attr = "diffusion.steps")]
    steps: Option<T>,
    #[traced(attr = keys::PROMPT, len)]
    prompt: &'a str,
    #[traced(attr = "shape", debug)]
    shape: (u32, u32),
    #[traced(attr = "seconds", with = Duration::as_secs_f64)]
    time: Duration,
    secret: T,
    #[traced(state)]
    trace: TraceState,
}
