//! Checks whether saved evidence can be evaluated: a file may hold anything.

use report::documents::evidence::{Evidence, SCHEMA};
use serde_json::Value;
use tma::{Error, Result};

/// Most of a count: sums of these are exact.
const MOST: f64 = (1u64 << 53) as f64;
/// Members with addresses and code, which are checked where they are used.
const ADDRESSES: [&str; 4] = ["range", "code", "places", "outside"];
/// Ways and sets of a cache.
const SHAPES: std::ops::RangeInclusive<usize> = 1..=1 << 24;
/// Slots a cycle of any core.
const WIDTHS: std::ops::RangeInclusive<f64> = 1.0..=64.0;

/// Refuses what no estimate keeps.
///
/// # Errors
/// It is another document; numbers are out of range, or of things that are not there.
pub(super) fn check(of: &Evidence) -> Result<()> {
    let refused = |why: String| {
        Err(Error::failed("cannot evaluate the evidence")
            .because(why)
            .hint("`tdtool report --estimate --evidence FILE -- COMMAND` writes it"))
    };
    if of.schema != SCHEMA {
        return refused(format!("its schema is `{}`, not `{SCHEMA}`", of.schema));
    }
    let value = serde_json::to_value(of).unwrap_or_default();
    if let Some(number) = out_of_range(&value) {
        return refused(format!("{number} is more than anything that is counted"));
    }
    let (ghz, error, _) = &of.core.clock;
    let numbers = [of.cycles, *ghz, *error, of.samples.seconds];
    let (least, most) = of.core.widths.unwrap_or((of.core.width, of.core.width));
    let widths = [of.core.width, least, most];
    if !widths.iter().all(|width| WIDTHS.contains(width))
        || numbers.iter().any(|number| *number < 0.0)
    {
        return refused("its width, clock or time is none".to_owned());
    }
    let shapes = [of.core.l1_code, of.core.l1_data].into_iter().flatten();
    if shapes.into_iter().any(|(ways, sets)| !SHAPES.contains(&ways) || !SHAPES.contains(&sets)) {
        return refused("its first-level caches are of no size".to_owned());
    }
    if of.functions.iter().any(|one| one.number >= of.samples.functions.len()) {
        return refused("it has code of a function that is not there".to_owned());
    }
    Ok(())
}

/// A number that is too large.
fn out_of_range(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => {
            let is_large = number.as_f64().is_none_or(|number| number.abs() > MOST);
            is_large.then(|| number.to_string())
        }
        Value::Array(all) => all.iter().find_map(out_of_range),
        Value::Object(all) => {
            let checked = all.iter().filter(|(name, _)| !ADDRESSES.contains(&name.as_str()));
            checked.into_iter().find_map(|(_, one)| out_of_range(one))
        }
        _ => None,
    }
}
