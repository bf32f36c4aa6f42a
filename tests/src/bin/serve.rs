//! `serve N`: serves a request of `N` steps, traced as the environment says.

fn main() {
    let steps = std::env::args().nth(1).and_then(|steps| steps.parse().ok());
    let _trace = stagetrace_tests::start();
    stagetrace_tests::pipeline::serve("a", steps.expect("the number of steps"));
}
