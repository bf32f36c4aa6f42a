//! A stage is one for all instances.

use stagetrace::{Stage, stage};

trait Worker {
    const STAGE: Stage;
}

#[stage(W::STAGE)]
fn of_the_function<W: Worker>(worker: W) {}

struct Pool<W>(W);

impl<W: Worker> Pool<W> {
    #[stage(W::STAGE)]
    fn of_the_impl(&self) {}
}

fn main() {}
