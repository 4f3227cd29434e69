//! The error of a node's value: a delete-one jackknife over the readings of its groups.
//!
//! Dropping one reading of a group drops all its events together, so their covariance is preserved.
//! Groups run at different times and are taken as independent: their variances add. A group
//! that ran for the share *s* of the time is a sample of a finite population, which leaves the
//! variance times (1 − s): a group that ran all the time counted everything and adds none.
//! (Cochran, *Sampling Techniques*, 3rd ed., §2.6 and §6.17 for the ratio estimator's jackknife.)

use super::layout::Layout;
use super::result::Evaluation;
use super::scratch::{Scratch, common_clocks};
use crate::counts::{Counts, GroupCounts};
use crate::tables::{EventId, NodeId, Table};

/// Fewest readings of a group that give an error.
pub const MIN_READINGS: usize = 8;

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

/// The repeated readings of one group, however it is known.
struct Readings {
    events: Vec<EventId>,
    /// Sums over all readings, by event.
    sums: Vec<f64>,
    /// Running time of each reading (live), or 1 each (imported intervals).
    weights: Vec<f64>,
    /// Counts by reading and event, in the unit of `sums`.
    values: Vec<Vec<f64>>,
    /// Scaled total = sum × `enabled` / sum of weights.
    enabled: f64,
    /// Share of the time it ran.
    share: f64,
}

impl Readings {
    fn of(group: &GroupCounts) -> Option<Self> {
        match group {
            GroupCounts::Live { events, readings, enabled } => {
                let weights: Vec<f64> = readings.iter().map(|r| r.running as f64).collect();
                let values = readings.iter().map(|r| r.values.iter().map(|v| *v as f64).collect());
                let share = group.running_share().unwrap_or(1.0);
                Self::new(events.clone(), weights, values.collect(), *enabled as f64, share)
            }
            GroupCounts::Imported { events, running, intervals } => {
                let events = events.iter().map(|(e, _)| *e).collect();
                let n = intervals.len();
                Self::new(events, vec![1.0; n], intervals.clone(), n as f64, running.unwrap_or(0.0))
            }
            GroupCounts::Missing { .. } => None,
        }
    }

    fn new(
        events: Vec<EventId>,
        weights: Vec<f64>,
        values: Vec<Vec<f64>>,
        enabled: f64,
        share: f64,
    ) -> Option<Self> {
        let complete = values.iter().all(|v| v.len() == events.len());
        if values.len() < MIN_READINGS || !complete {
            return None;
        }
        let sums = (0..events.len()).map(|i| values.iter().map(|v| v[i]).sum()).collect();
        Some(Self { events, sums, weights, values, enabled, share })
    }
}

/// Fills the errors of all nodes.
pub(super) fn errors(
    table: &Table,
    layout: &Layout,
    scratch: &mut Scratch,
    counts: &Counts,
    evaluation: &mut Evaluation,
) {
    let mut variance = vec![0.0f64; table.nodes.len()];
    for (g, group) in counts.groups.iter().enumerate() {
        let Some(readings) = Readings::of(group) else { continue };
        let dependent: Vec<NodeId> = table
            .order
            .iter()
            .copied()
            .filter(|&n| {
                layout.groups_of[usize::from(n)].contains(&g)
                    && evaluation.nodes[usize::from(n)].quantity.value.is_ok()
            })
            .collect();
        if dependent.is_empty() {
            continue;
        }
        let common = match group {
            GroupCounts::Live { .. } => common_clocks(table, counts),
            _ => None,
        };
        let spread = spread_of_group(table, layout, scratch, (g, &readings, common), &dependent);
        for (n, v) in dependent.iter().zip(spread) {
            variance[usize::from(*n)] += v;
        }
    }
    for (n, result) in evaluation.nodes.iter_mut().enumerate() {
        if result.quantity.value.is_err() {
            continue;
        }
        let groups = &layout.groups_of[n];
        let steps = rounding(table, n, groups, counts);
        result.quantity.error = error_of(groups, counts, variance[n] + steps);
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

/// Half width at 95 %, or why there is none.
fn error_of(groups: &[usize], counts: &Counts, variance: f64) -> Result<f64, String> {
    let mut fewest = usize::MAX;
    for &g in groups {
        match &counts.groups[g] {
            GroupCounts::Live { readings, .. } => fewest = fewest.min(readings.len()),
            GroupCounts::Imported { intervals, .. } if intervals.is_empty() => {
                return Err("imported totals have no repeated readings".into());
            }
            GroupCounts::Imported { intervals, .. } => fewest = fewest.min(intervals.len()),
            GroupCounts::Missing { .. } => return Err("not counted".into()),
        }
    }
    if fewest == usize::MAX {
        return Err("it uses no count".into());
    }
    if fewest < MIN_READINGS {
        return Err(format!(
            "{fewest} reading{} of its counters; an interval needs {MIN_READINGS}",
            if fewest == 1 { "" } else { "s" }
        ));
    }
    if !variance.is_finite() {
        return Err("undefined without one of its readings".into());
    }
    Ok(student_t95(fewest - 1) * variance.sqrt())
}

/// Jackknife variance of every node in `dependent` that comes from group `g`.
fn spread_of_group(
    table: &Table,
    layout: &Layout,
    scratch: &mut Scratch,
    (g, readings, common_clocks): (usize, &Readings, Option<f64>),
    dependent: &[NodeId],
) -> Vec<f64> {
    let whole: Vec<f64> = dependent.iter().map(|&n| scratch.value_of(n)).collect();
    let kept: Vec<f64> = scratch.group_mut(table, g).to_vec();
    let weight: f64 = readings.weights.iter().sum();
    let mut sum = vec![0.0; dependent.len()];
    let mut squares = vec![0.0; dependent.len()];
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
            // Differences from the whole value keep the sums small and exact.
            let difference = scratch.value_of(n) - whole[k];
            sum[k] += difference;
            squares[k] += difference * difference;
        }
    }
    scratch.group_mut(table, g).copy_from_slice(&kept);
    scratch.next_stamp();
    for (k, &n) in dependent.iter().enumerate() {
        scratch.set_value(n, whole[k]);
    }
    let n = readings.values.len() as f64;
    let scale = (n - 1.0) / n * (1.0 - readings.share);
    sum.iter().zip(&squares).map(|(s, q)| scale * (q - s * s / n).max(0.0)).collect()
}
