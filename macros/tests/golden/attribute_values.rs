#[stage(DiffStage::Decode, req, attrs("n" = n, keys::MODEL = req.model), kind = client, ret)]
fn two(req: &Request, n: u32) -> u32 {
    n
}

#[stage(
    DiffStage::Decode,
    detached,
    attrs("1" = n, "2" = n, "3" = n, "4" = n, "5" = n, "6" = n, "7" = n, "8" = n, "9" = n)
)]
fn nine(n: u32) {}
