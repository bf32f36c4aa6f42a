#[stage(DiffStage::Serve)]
fn serve(permit: Permit) -> ! {
    loop {}
}

#[stage(DiffStage::Serve)]
async fn serve_async(permit: Permit) -> ! {
    loop {}
}
