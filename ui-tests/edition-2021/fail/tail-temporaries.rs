use std::cell::RefCell;

fn bare() -> usize {
    let c = RefCell::new(String::from("abc"));
    c.borrow().len()
}

#[stagetrace::stage("tail")]
fn sync() -> usize {
    let c = RefCell::new(String::from("abc"));
    c.borrow().len()
}

#[stagetrace::stage("tail")]
async fn later() -> usize {
    let c = RefCell::new(String::from("abc"));
    c.borrow().len()
}

fn main() {}
