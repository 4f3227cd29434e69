//! Inputs of the document: facts of the run, counts, measurements in isolation and recordings; and the document before
//! all of them are complete.

use super::ask::{EstimateAsk, Functions, Shared};
use super::further::{Counted, Wanted};
use super::isolated::Found;
use super::pieces::Function;
use super::reasons::Unmeasured;
use crate::steps::Callback;
use crate::subject::Places;
use report::documents::estimate::Estimate;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Isolated measurements, by function and piece.
pub(super) type Isolated = HashMap<(usize, usize), Result<Found, Unmeasured>>;

/// Everything measured.
#[derive(Clone, Copy)]
pub(super) struct Measured<'a, 'b> {
    pub counted: &'a Counted<'a>,
    pub isolated: &'b Isolated,
    pub recorded: &'b Recorded,
}

/// Recordings that were wanted beside counts, those that were made, and the code of which loads were.
#[derive(Clone, Default)]
pub(super) struct Recorded {
    pub wanted: Wanted,
    pub recorded: Wanted,
    pub places: Places,
    /// Nothing was left that loads could explain.
    pub is_explained: bool,
}

/// Inputs of the document, beside counts and measurements.
pub(super) struct Known<'a> {
    pub shared: &'a Shared<'a>,
    pub found: &'a Functions,
    pub functions: &'a [Function],
    pub command: &'a [String],
    /// The program's name.
    pub name: &'a str,
    pub ask: &'a EstimateAsk,
}

/// Time between two documents at least, as a multiple of the time that one takes: the estimate waits for it.
const REST: u32 = 10;

/// Shows documents, not too often.
pub(super) struct Shown {
    to: Option<Callback<Estimate>>,
    next: Instant,
}

impl Shown {
    /// None was shown.
    pub fn new(to: Option<Callback<Estimate>>) -> Self {
        Self { to, next: Instant::now() }
    }

    /// Shows the document that `make` gives; one that comes too soon only if the step is over.
    pub fn show(&mut self, is_over: bool, make: impl FnOnce() -> Estimate) {
        let begin = Instant::now();
        let Some(to) = self.to.as_ref().filter(|_| is_over || begin >= self.next) else { return };
        to.call(make());
        self.next = Instant::now() + (begin.elapsed() * REST).max(Duration::from_millis(200));
    }
}

/// All pieces: measured, or waiting to be.
pub(super) fn waiting(functions: &[Function], measured: &Isolated) -> Isolated {
    let pieces = |(at, of): (usize, &Function)| (0..of.pieces.len()).map(move |piece| (at, piece));
    let wait = |of| (of, Err(Unmeasured::Waits));
    let mut all: Isolated = functions.iter().enumerate().flat_map(pieces).map(wait).collect();
    all.extend(measured.iter().map(|(of, found)| (*of, found.clone())));
    all
}

/// Says of what was not recorded that it may be.
pub(super) fn not_yet(document: &mut Estimate, recorded: Wanted) {
    for row in document.loops.iter_mut().chain(&mut document.blocks) {
        for (name, is_known) in [("mispredicted", recorded.branches), ("loads", recorded.loads)] {
            if let Some(why) = row.reasons.get_mut(name).filter(|_| !is_known) {
                "not recorded yet".clone_into(why);
            }
        }
    }
}
