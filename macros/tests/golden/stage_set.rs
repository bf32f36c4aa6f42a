/// The stages of a server.
#[derive(Stages)]
pub enum DiffStage {
    /// The scheduler works.
    ///
    /// In detail.
    #[stage(level = 1)]
    SchedulerDispatch,
    #[stage(level = 3, within = SchedulerDispatch, name = "denoise_step")]
    Step,
    VAE,
}
