//! Methods with every receiver, trait implementations and trait defaults.

#![deny(warnings, missing_docs, clippy::all, clippy::pedantic, clippy::nursery)]
#![allow(clippy::unused_async, clippy::unused_self, clippy::needless_pass_by_value)]
#![forbid(unsafe_code)]

use std::{
    future::Future,
    pin::{Pin, pin},
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use stagetrace::{Stages, TraceState, Traced, stage};

/// The stages of these tests.
#[derive(Stages)]
pub enum Steps {
    /// Only.
    Only,
}

/// A request.
#[derive(Traced, Default)]
#[traced(stages = Steps)]
pub struct Request {
    /// The name.
    #[traced(id)]
    pub name: String,
    /// The trace.
    #[traced(state)]
    pub trace: TraceState,
}

/// A job that holds a request.
#[derive(Default)]
pub struct Job {
    request: Request,
    done: u32,
}

fn run<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

impl Request {
    #[stage(Steps::Only, self)]
    fn shared(&self) -> usize {
        self.name.len()
    }

    #[stage(Steps::Only, self)]
    fn exclusive(&mut self) -> &mut String {
        &mut self.name
    }

    #[stage(Steps::Only, self)]
    fn by_value(self) -> String {
        self.name
    }

    #[stage(Steps::Only, self)]
    fn mutable_value(mut self) -> Self {
        self.name.push('x');
        self
    }

    #[stage(Steps::Only, self)]
    fn boxed(self: Box<Self>) -> String {
        self.name
    }

    #[stage(Steps::Only, self)]
    fn counted(self: &Arc<Self>) -> usize {
        self.name.len()
    }

    #[stage(Steps::Only, self)]
    fn pinned(self: Pin<&mut Self>) -> usize
    where
        Self: Sized,
    {
        self.name.len()
    }

    #[stage(Steps::Only, self)]
    async fn shared_async(&self) -> usize {
        self.name.len()
    }

    #[stage(Steps::Only, self)]
    async fn exclusive_async(&mut self) -> &mut String {
        &mut self.name
    }

    #[stage(Steps::Only, self)]
    async fn by_value_async(self) -> String {
        self.name
    }

    #[stage(Steps::Only)]
    async fn unnamed(&self, _: u32) -> u32 {
        1
    }
}

impl Job {
    #[stage(Steps::Only, self.request)]
    fn field(&mut self) -> u32 {
        self.done += 1;
        self.done
    }

    #[stage(Steps::Only, request)]
    async fn parameter(&mut self, request: &mut Request) -> u32 {
        request.name.push('y');
        self.done += 1;
        self.done
    }
}

trait Engine {
    #[stage(Steps::Only)]
    fn default_sync(&self) -> u32 {
        7
    }

    #[stage(Steps::Only, request)]
    async fn default_async(&self, request: &Request) -> usize
    where
        Self: Sync,
    {
        request.name.len()
    }

    fn sync(&self, request: &Request) -> usize;
    async fn run(&mut self, request: Request) -> String;
    fn run_send(&self, request: Arc<Request>) -> impl Future<Output = usize> + Send;
    fn rc(self: Rc<Self>) -> u32;
}

struct Cpu(u32);

impl Engine for Cpu {
    #[stage(Steps::Only, request)]
    fn sync(&self, request: &Request) -> usize {
        request.name.len()
    }

    #[stage(Steps::Only, request)]
    async fn run(&mut self, request: Request) -> String {
        self.0 += 1;
        request.name
    }

    #[stage(Steps::Only, request)]
    async fn run_send(&self, request: Arc<Request>) -> usize {
        request.name.len()
    }

    #[stage(Steps::Only)]
    fn rc(self: Rc<Self>) -> u32 {
        self.0
    }
}

#[test]
fn methods_do_what_the_bare_ones_do() {
    let mut request = Request { name: "abc".to_owned(), ..Request::default() };
    assert_eq!(request.shared(), 3);
    request.exclusive().push('d');
    assert_eq!(Box::new(request).boxed(), "abcd");
    assert_eq!(Request::default().mutable_value().by_value(), "x");
    assert_eq!(Arc::new(Request::default()).counted(), 0);
    assert_eq!(pin!(Request::default()).as_mut().pinned(), 0);
    let mut request = Request::default();
    assert_eq!(run(request.shared_async()), 0);
    run(request.exclusive_async()).push('a');
    assert_eq!(run(request.unnamed(3)), 1);
    assert_eq!(run(request.by_value_async()), "a");
    let mut job = Job::default();
    assert_eq!(job.field(), 1);
    assert_eq!(run(job.parameter(&mut Request::default())), 2);
    let mut cpu = Cpu(1);
    assert_eq!(cpu.default_sync(), 7);
    assert_eq!(run(cpu.default_async(&Request::default())), 0);
    assert_eq!(cpu.sync(&Request::default()), 0);
    assert_eq!(run(cpu.run(Request::default())), "");
    assert_eq!(run(cpu.run_send(Arc::default())), 0);
    assert_eq!(Rc::new(cpu).rc(), 2);
}
