//! Tests of the macros from outside: see `tests/`, `pass/` and `fail/`.
