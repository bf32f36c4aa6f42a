//! `serve N [MS]`: serves a request of `N` steps, traced as the environment says, and goes on for a
//! while.

use std::time::Duration;

fn main() {
    let number = |at| std::env::args().nth(at).map(|text| text.parse().expect("a number"));
    let _trace = stagetrace_tests::start();
    stagetrace_tests::pipeline::serve("a", number(1).expect("the number of steps"));
    std::thread::sleep(Duration::from_millis(number(2).unwrap_or_default().into()));
}
