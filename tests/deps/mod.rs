//! Dependencies of blocks: the finder, and `tdtool deps` from end to end.

mod document;
mod finder;
mod inputs;
mod truth;

use crate::support::run::{Ran, tdtool};
use serde_json::Value;

/// `tdtool deps` with these arguments.
fn deps(arguments: &[&str]) -> Ran {
    tdtool([&["deps"], arguments].concat())
}

/// The same for an Emerald Rapids.
fn deps_of_emr(arguments: &[&str]) -> Ran {
    tdtool([&["--uarch", "emr", "deps"], arguments].concat())
}

/// Its document.
fn json(arguments: &[&str]) -> Value {
    deps_of_emr(&[arguments, &["--format", "json"]].concat()).succeeded().json()
}
