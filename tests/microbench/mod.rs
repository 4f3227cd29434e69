//! Microbenchmarks: `tdtool kernel`, and the library that makes them.

mod command;
mod generation;
mod known;

use crate::support::run::{Ran, tdtool};

/// `tdtool kernel` with these arguments.
fn microbench(arguments: &[&str]) -> Ran {
    tdtool([&["kernel"], arguments].concat())
}
