#[stage(DiffStage::GpuForward, req.inner, no_err)]
fn forward<'a>(req: &'a Job) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>> {
    Box::pin(async move { req.run().await })
}
