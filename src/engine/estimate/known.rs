//! Inputs of the document: facts of the run, counts, measurements in isolation and recordings.

use super::ask::EstimateAsk;
use super::counted::Counted;
use super::functions::Functions;
use super::further::Wanted;
use super::isolated::Found;
use super::pieces::Function;
use super::reasons::Unmeasured;
use super::shared::Shared;
use crate::places::Places;
use std::collections::HashMap;

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
