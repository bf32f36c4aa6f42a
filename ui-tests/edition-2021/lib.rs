//! The shapes of `ui-tests` for users of edition 2021; see `tests/`.
//!
//! The macros are of edition 2024, and the user's block stays of edition 2021, where the temporaries of
//! a tail expression outlive the locals. So this is refused, as it is without the attribute:
//!
//! ```compile_fail,E0597
//! #[stagetrace::stage("tail")]
//! fn length() -> usize {
//!     let text = std::cell::RefCell::new(String::from("abc"));
//!     text.borrow().len()
//! }
//! ```
//!
//! ```compile_fail,E0597
//! #[stagetrace::stage("tail")]
//! async fn length() -> usize {
//!     let text = std::cell::RefCell::new(String::from("abc"));
//!     text.borrow().len()
//! }
//! ```
//!
//! That nothing else is wrong with it, these show:
//!
//! ```
//! #[stagetrace::stage("tail")]
//! fn length() -> usize {
//!     let text = std::cell::RefCell::new(String::from("abc"));
//!     let length = text.borrow().len();
//!     length
//! }
//! ```
//!
//! ```
//! #[stagetrace::stage("tail")]
//! async fn length() -> usize {
//!     let text = std::cell::RefCell::new(String::from("abc"));
//!     let length = text.borrow().len();
//!     length
//! }
//! ```
