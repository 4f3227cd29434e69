//! Microbenchmarks: `tdtool microbench`, and the library that makes them.

mod command;
mod generation;
mod known;

use crate::support::run::{Ran, tdtool};

/// `tdtool microbench` with these arguments.
fn microbench(arguments: &[&str]) -> Ran {
    tdtool([&["microbench"], arguments].concat())
}
