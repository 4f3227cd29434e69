//! Which code is at an address of a process at a time.

use super::read::{Entry, each};
use crate::files::Unreadable;
use crate::input::Input;
use std::collections::HashMap;
use std::fs::File;

/// Code that is at `start..start + size` from a time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Load {
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    pub time: u64,
    pub start: u64,
    pub size: u64,
    /// Offset of the code in the file.
    pub code: u64,
}

/// Code that was moved or loaded, at most `most` times, in order of time, and whether those are `CLOCK_MONOTONIC`'s.
///
/// # Errors
/// Why it is no jitdump that can be read.
pub(crate) fn loads(file: File, most: usize) -> Result<(Vec<Load>, bool), Unreadable> {
    let input = Input::of_file(file)?;
    let mut all: Vec<Load> = Vec::new();
    // Where the code at an address is in the file.
    let mut at: HashMap<u64, u64> = HashMap::new();
    let header = each(&input, &mut |entry| {
        let load = match entry {
            Entry::Load { time, start, size, code, .. } => Load { time, start, size, code },
            Entry::Move { time, from, start, size } => match at.remove(&from) {
                Some(code) => Load { time, start, size, code },
                None => return,
            },
            Entry::Lines { .. } => return,
        };
        if all.len() < most {
            at.insert(load.start, load.code);
            all.push(load);
        }
    })?;
    all.sort_by_key(|load| load.time);
    Ok((all, header.is_monotonic))
}
