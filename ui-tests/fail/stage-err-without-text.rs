//! `err` records the text of an error, which must have one.

use stagetrace::stage;

struct Silent;

#[stage("forward", err)]
fn sync() -> Result<u32, Silent> {
    Ok(1)
}

#[stage("forward", err)]
async fn later() -> Result<u32, Silent> {
    Ok(1)
}

// Without `err` it need not.
#[stage("forward")]
fn judged() -> Result<u32, Silent> {
    Ok(1)
}

fn main() {}
