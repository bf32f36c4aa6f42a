//! Sync functions of every kind of return, parameter and early exit.

#![deny(warnings, missing_docs, clippy::all, clippy::pedantic, clippy::nursery)]
#![allow(clippy::unused_unit, clippy::trivially_copy_pass_by_ref)]
#![forbid(unsafe_code)]

use std::{collections::HashMap, fmt::Display};

use stagetrace::{Stages, stage};

/// The stages of these tests.
#[derive(Stages, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steps {
    /// Outer.
    #[stage(level = 1)]
    Outer,
    /// Inner.
    #[stage(level = 3, within = Outer, name = "inner_step")]
    Inner,
}

#[stage(Steps::Outer)]
fn nothing() {}

#[stage(Steps::Inner)]
fn unit_written() -> () {}

#[stage(Steps::Inner)]
fn early_return(x: i32) -> i32 {
    if x > 2 {
        return 1;
    }
    x
}

#[stage(Steps::Inner)]
fn question_mark(x: &str) -> Result<i32, std::num::ParseIntError> {
    let x: i32 = x.parse()?;
    Ok(x)
}

#[stage("named")]
fn coerced(x: i32) -> Box<dyn Display> {
    if x > 0 {
        return Box::new(x);
    }
    Box::new("none")
}

#[stage("named")]
fn with_impl(n: u32) -> Result<Vec<impl Display>, String> {
    if n > 3 {
        return Err("too many".to_owned());
    }
    Ok(vec![n])
}

#[stage("named")]
fn returns_closure(n: u32) -> impl Fn(u32) -> u32 {
    move |m| m + n
}

#[stage("named")]
fn boxed_closure(n: u32) -> Box<dyn Fn(u32) -> u32> {
    Box::new(move |m| m + n)
}

#[stage(Steps::Inner, err)]
fn borrowed_mutably(v: &mut [u32]) -> Result<&mut u32, String> {
    v.last_mut().ok_or_else(|| "empty".to_owned())
}

#[stage(Steps::Inner, err)]
fn borrowed_twice<'a>(map: &'a mut HashMap<u32, String>, key: &u32) -> Option<&'a mut String> {
    map.get_mut(key)
}

#[stage(Steps::Inner)]
fn mutable_parameter(mut x: Vec<u32>) -> usize {
    x.push(1);
    x.len()
}

#[stage(Steps::Inner)]
fn never_ends(stop: bool) -> u32 {
    if stop {
        return 0;
    }
    loop {
        std::thread::yield_now();
    }
}

#[stage(Steps::Inner)]
fn panics() -> u32 {
    panic!("always")
}

#[stage(Steps::Inner)]
fn recursion(n: u32) -> u32 {
    if n == 0 { 0 } else { 1 + recursion(n - 1) }
}

#[stage(Steps::Outer)]
fn nested() -> u32 {
    #[stage(Steps::Inner)]
    fn inner() -> u32 {
        1
    }
    inner()
}

#[test]
fn sync_functions_do_what_the_bare_ones_do() {
    nothing();
    unit_written();
    assert_eq!(early_return(3), 1);
    assert_eq!(question_mark("7"), Ok(7));
    assert!(question_mark("x").is_err());
    assert_eq!(coerced(3).to_string(), "3");
    assert_eq!(coerced(-3).to_string(), "none");
    assert_eq!(with_impl(1).map(|v| v[0].to_string()), Ok("1".to_owned()));
    assert_eq!(returns_closure(1)(2), 3);
    assert_eq!(boxed_closure(1)(2), 3);
    *borrowed_mutably(&mut [1, 2]).expect("not empty") += 1;
    assert!(borrowed_twice(&mut HashMap::from([(1, String::new())]), &1).is_some());
    assert_eq!(mutable_parameter(vec![]), 1);
    assert_eq!(never_ends(true), 0);
    assert!(std::panic::catch_unwind(panics).is_err());
    assert_eq!(recursion(10), 10);
    assert_eq!(nested(), 1);
}
