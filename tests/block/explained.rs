//! Documents of blocks with their bounds and verdict, measured until a claim about them holds.

use super::block;
use crate::support::trial::{Trial, assert_holds};
use serde_json::Value;

/// Measures the block of this assembly until the document is one that the tool vouches for, `good`,
/// and as `judge` has it (see [`assert_holds`]).
pub fn assert_explained(
    assembly: &str,
    options: &[&str],
    good: impl Fn(&Value) -> bool,
    judge: impl Fn(&Value) -> Result<(), String>,
) {
    let always = ["--asm", assembly, "--format", "json", "--budget", "300"];
    let arguments = [&always, options].concat();
    assert_holds(assembly, || {
        let document = block(&arguments).json();
        if document["status"] == "ok" && good(&document) {
            return judge(&document).into();
        }
        Trial::Unsettled(format!("{}, {}", document["status"], document["hierarchy"]["verdict"]))
    });
}

/// Whether there is a verdict.
pub fn decided(document: &Value) -> bool {
    let bound = document["hierarchy"]["bound"].as_str();
    bound.is_some_and(|b| !["undecided", "unexplained"].contains(&b))
}

/// What is measured of the block, in cycles.
pub fn time(document: &Value) -> f64 {
    document["throughput"]["cycles"].as_f64().unwrap()
}

/// The bound of this name.
pub fn bound<'d>(document: &'d Value, name: &str) -> Option<&'d Value> {
    document["bounds"].as_array().unwrap().iter().find(|bound| bound["name"] == name)
}

/// The same, in cycles.
pub fn cycles(document: &Value, name: &str) -> Option<f64> {
    bound(document, name)?["cycles"].as_f64()
}
