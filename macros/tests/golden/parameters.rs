#[stage(DiffStage::Decode, req)]
fn patterns(
    Json(mut req): Json<Request>,
    Pair { left, .. }: Pair,
    (ref a, b): (A, B),
    _: Unused,
    #[cfg(feature = "x")] x: u32,
    #[allow(unused_variables)] mut y: u32,
    _permit: Permit,
) {
}
