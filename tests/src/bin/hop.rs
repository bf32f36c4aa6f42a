//! One process of a chain: reads a request as a JSON line on standard input, works on it, and
//! writes it, with what the trace says now, as a JSON line on standard output.
//!
//! `hop begin|serve|stages|relay`: begins the request and hands it over; begins a root of its own
//! below the sender's; runs stages without a root; relays without a recorder.

use stagetrace::{Outcome, Traced};
use stagetrace_tests::pipeline::{Generate, decode, dispatch, forward};
use stagetrace_tests::start;
use std::io::stdin;

fn main() {
    let role = std::env::args().nth(1).expect("the role is the first argument");
    let mut line = String::new();
    stdin().read_line(&mut line).expect("a request comes in");
    let mut request: Generate = serde_json::from_str(&line).expect("a request is a JSON object");
    let _trace = (role != "relay").then(start);
    match &*role {
        "begin" => {
            request.begin(None);
            dispatch(&request, || send(&request));
            request.finish(Outcome::HandedOver);
        }
        "serve" => {
            request.begin(None);
            forward(&request);
            request.finish(Outcome::Ok);
            send(&request);
        }
        "stages" => {
            decode(&request);
            send(&request);
        }
        "relay" => {
            request.begin(None);
            dispatch(&request, || send(&request));
            request.finish(Outcome::Ok);
        }
        _ => panic!("no such role: {role}"),
    }
}

fn send(request: &Generate) {
    println!("{}", serde_json::to_string(request).expect("a request becomes JSON"));
}
