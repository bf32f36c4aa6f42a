#[stage(DiffStage::GpuForward, req)]
pub fn forward(req: &Request, mut steps: u32) -> Result<Latents, Error> {
    #![allow(clippy::pedantic)]
    let latents = run(req, steps)?;
    Ok(latents)
}
