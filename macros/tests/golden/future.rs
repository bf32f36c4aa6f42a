#[stage(DiffStage::GpuForward, attrs("steps" = steps))]
fn forward(steps: u32) -> impl Future<Output = u32> + Send {
    let steps = steps + 1;
    async move { steps }
}
