//! Serde would not see the field.

use serde::{Deserialize, Serialize};
use stagetrace::request;

#[derive(Serialize)]
#[request]
struct Sent {
    #[serde(rename = "ID")]
    id: String,
}

#[derive(Deserialize)]
#[request]
struct Received {
    id: String,
}

fn main() {}
