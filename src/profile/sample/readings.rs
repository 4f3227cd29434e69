//! The READ field: counts of an event or of its group.
//!
//! Layout: `struct read_format` in linux/perf_event.h.

use super::cursor::{Cursor, Malformed};
use super::fields::{Reading, Readings};
use pmu::records::format::read;

const KNOWN: u64 =
    read::TOTAL_TIME_ENABLED | read::TOTAL_TIME_RUNNING | read::ID | read::GROUP | read::LOST;

/// Decodes a READ field; `None` (and nothing is read) if the format has unknown bits.
pub fn decode(body: &mut Cursor, format: u64) -> Result<Option<Readings>, Malformed> {
    if format & !KNOWN != 0 {
        return Ok(None);
    }
    let has = |bit| format & bit != 0;
    let mut word = |wanted: bool| wanted.then(|| body.u64("READ")).transpose();
    let group = has(read::GROUP);
    // The first word is the number of values of a group, or the value of a single event.
    let first = word(true)?.unwrap_or_default();
    let enabled = word(has(read::TOTAL_TIME_ENABLED))?;
    let running = word(has(read::TOTAL_TIME_RUNNING))?;
    if !group {
        let reading =
            Reading { value: first, id: word(has(read::ID))?, lost: word(has(read::LOST))? };
        return Ok(Some(Readings { enabled, running, values: vec![reading] }));
    }
    let size = 8 * (1 + u64::from(has(read::ID)) + u64::from(has(read::LOST)));
    let mut values = Cursor::new(body.bytes(first.saturating_mul(size), "READ")?);
    let mut readings = Readings { enabled, running, values: Vec::new() };
    while values.left() > 0 {
        let mut word = |wanted: bool| wanted.then(|| values.u64("READ")).transpose();
        let value = word(true)?.unwrap_or_default();
        readings.values.push(Reading {
            value,
            id: word(has(read::ID))?,
            lost: word(has(read::LOST))?,
        });
    }
    Ok(Some(readings))
}
