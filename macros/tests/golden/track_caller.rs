#[stage(DiffStage::GpuForward)]
#[track_caller]
fn check(ok: bool) -> u32 {
    assert!(ok);
    1
}
