#[stage(DiffStage::GpuForward, req, err)]
pub async fn forward<T: Send>(req: &mut Request, _: Permit, x: T) -> Result<Latents, Error> {
    run(req, x).await
}
