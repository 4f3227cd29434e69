//! The error of a node's value: a batch jackknife over the readings of its groups.
//!
//! Dropping one reading of a group drops all its events together, so their covariance is preserved.
//! Groups run at different times and are taken as independent: their variances add.
//!
//! Successive readings are not independent where a program has phases. So readings are put together
//! in batches of 1, 2, 4, … as long as there are 4 batches, and the widest interval counts, with
//! Student's t of the number of its batches (batch means: G. S. Fishman, *Discrete-Event Simulation*,
//! §6.6). What no reading has seen is added by [`super::readings`].

use super::Evaluation;
use super::evaluate::{Evaluator, Scratch, common_clocks};
use super::layout::Layout;
use super::readings::{MIN_READINGS, Readings, Unseen};
use crate::counts::{Counts, GroupCounts};
use crate::tables::{EventId, NodeId, Table};
use crate::text::several;
use smol_str::{SmolStr, format_smolstr};
use std::sync::Arc;

const BATCHES: usize = 4;
/// Share of the time from which on a group ran all of it, but for the start.
const WHOLE: f64 = 0.99;

/// Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom
/// (NIST/SEMATECH e-Handbook of Statistical Methods, §1.3.6.7.2).
const T95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// Two-sided 95 % quantile of Student's t.
pub fn student_t95(degrees: usize) -> f64 {
    match degrees {
        0 => f64::INFINITY,
        d => T95.get(d - 1).copied().unwrap_or(1.96),
    }
}

impl Evaluator<'_> {
    /// Values as [`Evaluator::values`], each with its error.
    pub fn evaluate(&mut self, counts: &Counts) -> Evaluation {
        let mut evaluation = self.values(counts);
        errors(self.table, &mut self.scratch, counts, &mut evaluation);
        evaluation
    }
}

fn errors(table: &Table, scratch: &mut Scratch, counts: &Counts, evaluation: &mut Evaluation) {
    let layout = &*Arc::clone(&evaluation.layout);
    let tells = |group| readings(group, counts).is_ok_and(|n| n >= MIN_READINGS);
    if !counts.groups.iter().any(tells) {
        // As in most intervals: no value has an error, for these reasons.
        let mut few = Few::default();
        for (n, result) in evaluation.nodes.iter_mut().enumerate() {
            if result.quantity.value.is_ok() {
                let groups = &layout.groups_of[n];
                result.quantity.error = error_of(groups, counts, f64::NAN, &mut few);
            }
        }
        return;
    }
    // A value at its limit varies, too: it is the part beyond the limit that does.
    scratch.unlimited = true;
    scratch.next_stamp();
    table.order.iter().for_each(|&n| scratch.compute(table, layout, n));
    let unlimited = scratch.values.clone();
    let mut squares = vec![0.0f64; table.nodes.len()];
    let mut unseen = Unseen::new(table);
    for (g, group) in counts.groups.iter().enumerate() {
        let Some(readings) = Readings::of(group) else { continue };
        let has_value = |n: &NodeId| evaluation.nodes[usize::from(*n)].quantity.value.is_ok();
        let uses = |n: &NodeId| layout.groups_of[usize::from(*n)].contains(&g);
        let dependent: Vec<NodeId> =
            table.order.iter().copied().filter(|n| uses(n) && has_value(n)).collect();
        if dependent.is_empty() {
            continue;
        }
        let common_clocks = match group {
            GroupCounts::Live { .. } => common_clocks(table, counts),
            _ => None,
        };
        let read = Read { group: g, readings: &readings, common_clocks, dependent: &dependent };
        let effects = effects_of_group(table, layout, scratch, read);
        for (n, effects) in dependent.iter().zip(effects) {
            squares[usize::from(*n)] += readings.unseen() * widest(&effects);
            unseen.enter(*n, &readings, variance(&effects, 1));
        }
    }
    unseen.compare(|n| evaluation.nodes[n].quantity.get());
    let mut few = Few::default();
    for (n, result) in evaluation.nodes.iter_mut().enumerate() {
        let Ok(value) = result.quantity.value else { continue };
        let groups = &layout.groups_of[n];
        let steps = student_t95(MIN_READINGS).powi(2) * rounding(table, n, groups, counts);
        let error = error_of(groups, counts, squares[n] + steps, &mut few);
        let least = unseen.least(n, value, unlimited[n]);
        result.quantity.error = error.map(|e| e.max(least));
    }
}

/// Variance that the fixed top-down metrics add: each reading is rounded to 1/255 of the slots
/// (Intel SDM vol. 3, PERF_METRICS), which is uniform with variance step²/12.
fn rounding(table: &Table, n: usize, groups: &[usize], counts: &Counts) -> f64 {
    let is_metric = |e: &EventId| table.events[usize::from(*e)].spec.metric.is_some();
    if !table.nodes[n].events[0].iter().any(is_metric) {
        return 0.0;
    }
    let readings = |g: &usize| match &counts.groups[*g] {
        GroupCounts::Live { events, readings, .. } if events.iter().any(is_metric) => {
            Some(readings.len())
        }
        _ => None,
    };
    let fewest = groups.iter().filter_map(readings).min();
    fewest.map_or(0.0, |n| 1.0 / (12.0 * 255.0 * 255.0 * n.max(1) as f64))
}

/// Why the readings of a group give no error.
enum NoReadings {
    /// Imported as totals.
    Totals,
    /// It was not counted.
    NotCounted,
}

impl NoReadings {
    /// In words that take no memory: most intervals have such groups.
    fn words(self) -> SmolStr {
        SmolStr::new_static(match self {
            Self::Totals => "imported totals have no repeated readings",
            Self::NotCounted => "not counted",
        })
    }
}

/// Number of readings of a group, or why they give no error.
fn readings(group: &GroupCounts, counts: &Counts) -> Result<usize, NoReadings> {
    match group {
        // An interval is read once where its groups ran all the time: nothing is estimated.
        GroupCounts::Live { .. } if counts.interval.is_some() && ran_all(group) => Ok(MIN_READINGS),
        GroupCounts::Live { readings, .. } => Ok(readings.len()),
        GroupCounts::Imported { intervals, .. } if intervals.is_empty() => Err(NoReadings::Totals),
        GroupCounts::Imported { intervals, .. } => Ok(intervals.len()),
        GroupCounts::Missing { .. } => Err(NoReadings::NotCounted),
    }
}

/// Whether a group never waited for counters.
fn ran_all(group: &GroupCounts) -> bool {
    group.running_share().is_some_and(|share| share >= WHOLE)
}

/// Why so few readings give no error: the same words for many nodes of an interval.
#[derive(Default)]
struct Few {
    readings: Option<usize>,
    why: SmolStr,
}

impl Few {
    fn readings(&mut self, n: usize) -> SmolStr {
        if self.readings != Some(n) {
            self.readings = Some(n);
            self.why = format_smolstr!(
                "its counters were read {}; an error needs {MIN_READINGS}",
                several(n, "time")
            );
        }
        self.why.clone()
    }
}

/// Half width at 95 % by its square, or why there is none.
fn error_of(groups: &[usize], counts: &Counts, square: f64, few: &mut Few) -> Result<f64, SmolStr> {
    let mut fewest = usize::MAX;
    for &g in groups {
        fewest = fewest.min(readings(&counts.groups[g], counts).map_err(NoReadings::words)?);
    }
    if fewest == usize::MAX {
        return Err(SmolStr::new_static("it uses no count"));
    }
    if fewest < MIN_READINGS {
        return Err(few.readings(fewest));
    }
    if !square.is_finite() {
        return Err(SmolStr::new_static("undefined without one of its readings"));
    }
    Ok(square.sqrt())
}

/// The square of the widest half width over all lengths of batches.
fn widest(effects: &[f64]) -> f64 {
    let mut most = 0.0f64;
    let mut length = 1;
    while effects.len() / length >= BATCHES {
        let batches = effects.len().div_ceil(length);
        let square = student_t95(batches - 1).powi(2) * variance(effects, length);
        // Not `max`, which drops what is undefined.
        most = if square > most || square.is_nan() { square } else { most };
        length *= 2;
    }
    most
}

/// Variance of a value by the effects of its readings, in batches of `length`.
fn variance(effects: &[f64], length: usize) -> f64 {
    let n = effects.len() as f64;
    let mean = effects.iter().sum::<f64>() / n;
    let batch = |b: &[f64]| b.iter().map(|e| e - mean).sum::<f64>();
    let batches: Vec<f64> = effects.chunks(length).map(batch).collect();
    let m = batches.len() as f64;
    m / (m - 1.0) * batches.iter().map(|b| b * b).sum::<f64>() / (n * n)
}

struct Read<'a> {
    group: usize,
    readings: &'a Readings,
    /// Clocks that all groups have in common, if they are scaled to them.
    common_clocks: Option<f64>,
    /// Nodes with a value that need it.
    dependent: &'a [NodeId],
}

/// By dependent node, and by reading of a group, the effect of a reading: n - 1 times what the
/// value loses without it (the centred pseudo-values of the jackknife).
fn effects_of_group(
    table: &Table,
    layout: &Layout,
    scratch: &mut Scratch,
    read: Read<'_>,
) -> Vec<Vec<f64>> {
    let Read { group: g, readings, common_clocks, dependent } = read;
    let whole: Vec<f64> = dependent.iter().map(|&n| scratch.value_of(n)).collect();
    let kept: Vec<f64> = scratch.group_mut(table, g).to_vec();
    let weight: f64 = readings.weights.iter().sum();
    let n_less_1 = readings.values.len() as f64 - 1.0;
    let mut effects = vec![Vec::with_capacity(readings.values.len()); dependent.len()];
    for (left_out, own) in readings.values.iter().zip(&readings.weights) {
        let mut scale = readings.enabled / (weight - own);
        let clocks = readings.events.iter().position(|e| *e == table.clocks);
        if let (Some(common), Some(at)) = (common_clocks, clocks) {
            // As the whole was: to the common clock count.
            scale = common / (readings.sums[at] - left_out[at]);
        }
        let counts = scratch.group_mut(table, g);
        for ((&e, all), without) in readings.events.iter().zip(&readings.sums).zip(left_out) {
            counts[usize::from(e)] = (all - without) * scale;
        }
        scratch.next_stamp();
        for (k, &n) in dependent.iter().enumerate() {
            scratch.compute(table, layout, n);
            effects[k].push(n_less_1 * (whole[k] - scratch.value_of(n)));
        }
    }
    scratch.group_mut(table, g).copy_from_slice(&kept);
    scratch.next_stamp();
    for (k, &n) in dependent.iter().enumerate() {
        scratch.set_value(n, whole[k]);
    }
    effects
}
