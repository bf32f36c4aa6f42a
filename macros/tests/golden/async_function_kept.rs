#[stage(DiffStage::GpuForward)]
#[tokio::test]
async fn forward() {
    run().await
}
