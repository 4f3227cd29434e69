//! The error of a node's value: a delete-one jackknife over the readings of its groups.
//!
//! Dropping one reading of a group drops all its events together, so their covariance is kept.
//! Groups run at different times and are taken as independent: their variances add. A group
//! that ran for the share *s* of the time is a sample of a finite population, which leaves the
//! variance times (1 − s): a group that ran all the time counted everything and adds none.
//! (Cochran, *Sampling Techniques*, 3rd ed., §2.6 and §6.17 for the ratio estimator's jackknife.)

use super::evaluate::{Evaluation, Scratch};
use super::layout::Layout;
use crate::counts::{Counts, GroupCounts, Reading};
use crate::tables::{NodeId, Table};

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
        let GroupCounts::Live { events, readings, enabled } = group else { continue };
        if readings.len() < MIN_READINGS {
            continue;
        }
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
        let spread =
            spread_of_group(table, layout, scratch, g, events, readings, *enabled, &dependent);
        for (n, v) in dependent.iter().zip(spread) {
            variance[usize::from(*n)] += v;
        }
    }
    for (n, result) in evaluation.nodes.iter_mut().enumerate() {
        if result.quantity.value.is_err() {
            continue;
        }
        result.quantity.error = error_of(&layout.groups_of[n], counts, variance[n]);
    }
}

/// Half width at 95 %, or why there is none.
fn error_of(groups: &[usize], counts: &Counts, variance: f64) -> Result<f64, String> {
    let mut fewest = usize::MAX;
    for &g in groups {
        match &counts.groups[g] {
            GroupCounts::Live { readings, .. } => fewest = fewest.min(readings.len()),
            GroupCounts::Imported { .. } => {
                return Err("imported totals hold no repeated readings".into());
            }
            GroupCounts::Missing { .. } => return Err("not counted".into()),
        }
    }
    if fewest == usize::MAX {
        return Err("it rests on no count".into());
    }
    if fewest < MIN_READINGS {
        return Err(format!(
            "{fewest} reading{} of its counters, {MIN_READINGS} are needed",
            if fewest == 1 { "" } else { "s" }
        ));
    }
    if !variance.is_finite() {
        return Err("undefined without one of its readings".into());
    }
    Ok(student_t95(fewest - 1) * variance.sqrt())
}

/// Jackknife variance of every node in `dependent` that comes from group `g`.
#[allow(clippy::too_many_arguments)]
fn spread_of_group(
    table: &Table,
    layout: &Layout,
    scratch: &mut Scratch,
    g: usize,
    events: &[u16],
    readings: &[Reading],
    enabled: u64,
    dependent: &[NodeId],
) -> Vec<f64> {
    let running: u64 = readings.iter().map(|r| r.running).sum();
    let sums: Vec<u64> = (0..events.len())
        .map(|i| readings.iter().map(|r| r.values.get(i).copied().unwrap_or(0)).sum())
        .collect();
    let whole: Vec<f64> = dependent.iter().map(|&n| scratch.value_of(n)).collect();
    let kept: Vec<f64> = scratch.group_mut(table, g).to_vec();
    let mut sum = vec![0.0; dependent.len()];
    let mut squares = vec![0.0; dependent.len()];
    for left_out in readings {
        let scale = enabled as f64 / (running - left_out.running) as f64;
        let counts = scratch.group_mut(table, g);
        for (i, &e) in events.iter().enumerate() {
            let rest = sums[i] - left_out.values.get(i).copied().unwrap_or(0);
            counts[usize::from(e)] = rest as f64 * scale;
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
    let n = readings.len() as f64;
    let share = if enabled == 0 { 1.0 } else { (running as f64 / enabled as f64).min(1.0) };
    let scale = (n - 1.0) / n * (1.0 - share);
    sum.iter().zip(&squares).map(|(s, q)| scale * (q - s * s / n).max(0.0)).collect()
}
