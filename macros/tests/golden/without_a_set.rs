#[stage("decode")]
fn literal() {}

#[stage(name = NAME, req)]
async fn constant(req: &Request) {}
