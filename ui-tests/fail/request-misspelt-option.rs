//! Options that do not exist.

use stagetrace::request;

#[request(nmae = "x", skip_nul, stages, skip_null = true, "text")]
struct Request {
    id: String,
}

#[request(skip_null)]
#[derive(Debug)]
struct WithoutSerde {
    id: String,
}

#[request(name = "", kind = sever)]
struct HandedOn {
    #[traced(id, display)]
    id: String,
}

fn main() {}
