//! Two stages of one name.

use stagetrace::Stages;

#[derive(Stages)]
enum Steps {
    KvCache,
    KVCache,
    #[stage(name = "kv_cache")]
    Other,
}

fn main() {}
