use std::convert::Infallible;
use std::error::Error;
use std::fmt::{self, Display};
use std::ops::{ControlFlow, Deref};
use std::process::ExitCode;
use std::task::Poll;

use super::*;
use crate::__private0::judge;
use crate::{Judged, Outcome};

/// `ok`, or the type and text of the failure.
fn shown(judged: Judged) -> String {
    match (judged.error_type(), judged.message()) {
        (None, _) => "ok".to_owned(),
        (Some(error_type), None) => error_type.to_owned(),
        (Some(error_type), Some(message)) => format!("{error_type}: {message}"),
    }
}

macro_rules! judged {
    ($value:expr) => {{
        let value = $value;
        let (default, err, no_err) =
            (judge!(DEFAULT, &value), judge!(ERR, &value), judge!(NO_ERR, &value));
        assert_eq!(no_err, Judged::OK);
        [shown(default), shown(err)]
    }};
}

#[derive(Debug)]
struct Broken {
    source: Option<Box<Broken>>,
    text: &'static str,
}

impl Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

impl Error for Broken {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

fn broken() -> Broken {
    let cause = Broken { source: None, text: "no memory" };
    Broken { source: Some(Box::new(cause)), text: "forward failed" }
}

const FAILED: [&str; 2] = ["Broken", "Broken: forward failed: no memory"];
const OK: [&str; 2] = ["ok", "ok"];

#[test]
fn an_err_is_a_failure_and_its_text_is_taken_with_err() {
    assert_eq!(judged!(Ok::<u8, Broken>(1)), OK);
    assert_eq!(judged!(Err::<u8, Broken>(broken())), FAILED);
}

#[test]
fn an_err_inside_poll_is_a_failure() {
    assert_eq!(judged!(Poll::<Result<u8, Broken>>::Pending), OK);
    assert_eq!(judged!(Poll::Ready(Ok::<u8, Broken>(1))), OK);
    assert_eq!(judged!(Poll::Ready(Err::<u8, Broken>(broken()))), FAILED);
}

#[test]
fn none_and_break_are_failures_only_with_err() {
    assert_eq!(judged!(Some(1)), OK);
    assert_eq!(judged!(None::<u8>), ["ok", "None"]);
    assert_eq!(judged!(Poll::Ready(None::<u8>)), ["ok", "None"]);
    assert_eq!(judged!(ControlFlow::<u8, u8>::Continue(1)), OK);
    assert_eq!(judged!(ControlFlow::<u8, u8>::Break(1)), ["ok", "Break"]);
}

#[test]
fn an_exit_code_other_than_success_is_a_failure() {
    assert_eq!(judged!(ExitCode::SUCCESS), OK);
    assert_eq!(judged!(ExitCode::from(3)), ["ExitCode", "ExitCode"]);
}

#[test]
fn values_without_outcome_are_ok() {
    struct Opaque;
    fn hidden() -> impl Iterator<Item = u8> {
        std::iter::empty()
    }
    assert_eq!(judged!(()), OK);
    assert_eq!(judged!(Opaque), OK);
    assert_eq!(judged!(hidden()), OK);
    assert_eq!(judged!(Poll::Ready(Opaque)), OK);
    assert_eq!(judged!("text"), OK);
    assert_eq!(judged!(Box::new(|| ()) as Box<dyn Fn()>), OK);
}

#[test]
fn an_alias_is_judged_as_what_it_stands_for() {
    type Reply<T> = Result<T, Broken>;
    let reply: Reply<()> = Err(broken());
    assert_eq!(judged!(reply), FAILED);
}

#[test]
fn a_type_of_the_user_is_judged_by_its_own_words() {
    enum Reply {
        Text,
        Refused(Broken),
    }

    impl StageOutcome for Reply {
        type Error = Broken;

        fn failure(&self, _: bool) -> Option<Failure<'_, Broken>> {
            match self {
                Self::Text => None,
                Self::Refused(error) => Some(Failure::Error(error)),
            }
        }
    }

    assert_eq!(judged!(Reply::Text), OK);
    assert_eq!(judged!(Reply::Refused(broken())), FAILED);
}

#[test]
fn generic_functions_are_judged_by_their_bounds() {
    fn plain<T>(value: T) -> Judged {
        judge!(DEFAULT, &value)
    }
    fn result<T, E>(value: Result<T, E>) -> Judged {
        judge!(DEFAULT, &value)
    }
    fn display<T, E: Display>(value: Result<T, E>) -> Judged {
        judge!(ERR, &value)
    }
    fn error<T, E: Error>(value: Result<T, E>) -> Judged {
        judge!(ERR, &value)
    }
    fn bounded<T: StageOutcome>(value: T) -> Judged {
        judge!(DEFAULT, &value)
    }
    fn unsized_value<T: ?Sized>(value: &T) -> Judged {
        judge!(ERR, value)
    }

    assert_eq!(shown(plain(Err::<(), Broken>(broken()))), "ok");
    assert_eq!(shown(result(Err::<(), Broken>(broken()))), "Broken");
    assert_eq!(shown(display(Err::<(), Broken>(broken()))), "Broken: forward failed");
    assert_eq!(shown(error(Err::<(), Broken>(broken()))), "Broken: forward failed: no memory");
    assert_eq!(shown(bounded(Err::<(), Broken>(broken()))), "Broken");
    assert_eq!(shown(unsized_value("text")), "ok");
}

#[test]
fn the_output_of_a_future_is_judged_in_a_closure() {
    struct Judging<F, J>(F, J);

    fn judging<F: Future, J: FnOnce(&F::Output) -> Judged>(future: F, judge: J) -> Judging<F, J> {
        Judging(future, judge)
    }

    fn run<F: Future, J: FnOnce(&F::Output) -> Judged>(judging: Judging<F, J>) -> Judged {
        let mut future = std::pin::pin!(judging.0);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => (judging.1)(&output),
            Poll::Pending => panic!("ready futures only"),
        }
    }

    let failed = async {
        let error: Result<u8, Broken> = Err(broken());
        error
    };
    assert_eq!(shown(run(judging(failed, |output| judge!(ERR, output)))), FAILED[1]);
    let plain = judging(async { 1 }, |output| judge!(ERR, output));
    assert_eq!(shown(run(plain)), "ok");
}

#[test]
#[expect(unreachable_code, unused_variables, clippy::diverging_sub_expression)]
fn a_function_that_never_returns_compiles_with_no_err() {
    fn never() -> Judged {
        fn diverge() -> ! {
            panic!("as expected")
        }
        let value = diverge();
        judge!(NO_ERR, &value)
    }
    assert!(catch_unwind(never).is_err());
}

#[test]
fn an_error_without_display_needs_no_text_by_default() {
    struct Mute;
    let value: Result<(), Mute> = Err(Mute);
    assert_eq!(shown(judge!(DEFAULT, &value)), "Mute");
}

#[test]
fn an_error_that_cannot_happen_is_ok() {
    assert_eq!(judged!(Ok::<u8, Infallible>(1)), OK);
}

#[test]
fn the_chain_is_found_behind_a_pointer() {
    struct Anyhow(Box<dyn Error + Send + Sync>);

    impl Deref for Anyhow {
        type Target = dyn Error + Send + Sync;

        fn deref(&self) -> &Self::Target {
            &*self.0
        }
    }

    let text = "forward failed: no memory";
    let boxed: Result<(), Box<dyn Error>> = Err(Box::new(broken()));
    assert_eq!(judged!(boxed), ["_OTHER".to_owned(), format!("_OTHER: {text}")]);
    let anyhow: Result<(), Anyhow> = Err(Anyhow(Box::new(broken())));
    assert_eq!(judged!(anyhow), ["Anyhow".to_owned(), format!("Anyhow: {text}")]);
    let error = broken();
    let borrowed: Result<(), &Broken> = Err(&error);
    assert_eq!(judged!(borrowed), FAILED);
    let text: Result<(), String> = Err("out of tokens".to_owned());
    assert_eq!(judged!(text), ["String", "String: out of tokens"]);
}

#[test]
fn a_source_that_the_text_already_names_is_not_repeated() {
    let cause = Broken { source: None, text: "no memory" };
    let error = Broken { source: Some(Box::new(cause)), text: "forward failed: no memory" };
    assert_eq!(judged!(Err::<(), _>(error)), FAILED);
}

#[test]
fn a_text_without_end_is_cut() {
    struct Endless;

    impl Display for Endless {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            loop {
                f.write_str("é!")?;
            }
        }
    }

    let text = judge!(ERR, &Err::<(), _>(Endless)).message().map(str::len);
    assert!(text.is_some_and(|len| (MAX_MESSAGE - 1..=MAX_MESSAGE).contains(&len)));
}

#[test]
fn a_chain_that_bites_its_tail_ends() {
    #[derive(Debug)]
    struct Ring;

    impl Display for Ring {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("ring")
        }
    }

    impl Error for Ring {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&Ring)
        }
    }

    assert_eq!(judged!(Err::<(), _>(Ring)), ["Ring", "Ring: ring"]);
}

#[test]
fn a_text_that_panics_stays_inside() {
    struct Panics;

    impl Display for Panics {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("so far")?;
            panic!("in Display")
        }
    }

    let judged = judge!(ERR, &Err::<(), _>(Panics));
    assert_eq!(judged.outcome(), Outcome::Error);
    assert_eq!(judged.message(), Some("so far (its text panicked)"));
}

#[test]
fn judging_a_success_keeps_the_value_usable() {
    let value: Result<String, Broken> = Ok("kept".to_owned());
    let judged = judge!(ERR, &value);
    assert_eq!((judged, value.as_deref().ok()), (Judged::OK, Some("kept")));
}
