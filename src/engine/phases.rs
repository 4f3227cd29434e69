//! Intervals → phases: change points of level 1, or of software counts where there is no tree.

use profile::hot::{StackFrame, half_width};
use report::documents::Report;
use report::documents::report_parts::{Phase, PhaseFunction, PhaseValue, Timeline};
use report::documents::series::{Interval, Series, level_1, software};
use std::collections::HashMap;
use std::ops::Range;

/// Most points that are compared with one another; more intervals are put together.
const MOST: usize = 4096;
/// Least number of points of a phase.
const SHORTEST: usize = 2;
/// Functions listed for a phase.
const FUNCTIONS: usize = 5;
/// Least spread of shares: smaller changes are of no interest.
const LEAST_SPREAD: f64 = 0.01;
/// The median of a squared normal variable of variance 1.
const MEDIAN: f64 = 0.4549;

/// Series of the intervals, and their phases: one if nothing changes, none of fewer than two intervals.
pub fn of(intervals: &[Report]) -> (Vec<Series>, Vec<Phase>) {
    let series = level_1(intervals).map_or_else(|| software(intervals), |tree| vec![tree]);
    let found = phases(&series);
    (series, found)
}

/// Enters the phases of a run into its report; nothing of fewer than two.
pub fn enter(whole: &mut Report, intervals: &[Report]) {
    let (_, found) = of(intervals);
    whole.phases = if found.len() > 1 { found } else { Vec::new() };
    let Some(timeline) = &whole.timeline else { return };
    for phase in &mut whole.phases {
        phase.functions = functions(timeline, phase.from, phase.to);
    }
}

/// The phases of series that have the same intervals.
fn phases(series: &[Series]) -> Vec<Phase> {
    let Some(first) = series.first().filter(|one| !one.intervals.is_empty()) else {
        return Vec::new();
    };
    let each = first.intervals.len().div_ceil(MOST).max(1);
    let columns: Vec<Vec<f64>> = series.iter().flat_map(|one| columns(one, each)).collect();
    let points = first.intervals.len().div_ceil(each);
    let mut from = 0;
    let mut out = Vec::new();
    for to in change_points(&columns, points).into_iter().chain([points]) {
        let range = from * each..(to * each).min(first.intervals.len());
        from = to;
        if let (Some(begin), Some(end)) =
            (first.intervals.get(range.start), first.intervals.get(range.end - 1))
        {
            out.push(Phase {
                from: begin.span.0,
                to: end.span.1,
                intervals: range.len(),
                values: series.iter().flat_map(|one| means(one, range.clone())).collect(),
                functions: Vec::new(),
            });
        }
    }
    out
}

/// The values of each label in units of their spread from one interval to the next, `each` intervals together.
fn columns(series: &Series, each: usize) -> Vec<Vec<f64>> {
    let of = |label: usize| {
        let mut last = 0.0;
        let value = |interval: &Interval| {
            // Unmeasured values change nothing.
            last = interval.values.get(label).copied().flatten().unwrap_or(last);
            last
        };
        let values: Vec<f64> = series.intervals.iter().map(value).collect();
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        let values: Vec<f64> = values.chunks(each).map(mean).collect();
        let (low, high) = values
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
        let least = if series.is_share { LEAST_SPREAD } else { 0.05 * (high - low) };
        let unit = spread(&values).max(least).max(f64::MIN_POSITIVE);
        let centre = mean(&values);
        values.into_iter().map(|value| (value - centre) / unit).collect()
    };
    (0..series.labels.len()).map(of).collect()
}

/// Standard deviation of the noise, by the median of squared differences: few changes of level do not matter.
fn spread(values: &[f64]) -> f64 {
    let mut squares: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).collect();
    squares.sort_by(f64::total_cmp);
    let median = squares.get(squares.len() / 2).copied().unwrap_or_default();
    (median / (2.0 * MEDIAN)).sqrt()
}

/// Where the means of `columns` change: optimal partitioning (B. Jackson et al., IEEE Signal Processing Letters 12,
/// 2005), pruned (R. Killick et al., JASA 107, 2012), for squared deviations of unit variance. A change costs twice
/// what the Bayesian information criterion asks: intervals in sequence resemble one another.
fn change_points(columns: &[Vec<f64>], points: usize) -> Vec<usize> {
    let penalty = 2.0 * (columns.len() + 1) as f64 * (points.max(2) as f64).ln();
    let sums: Vec<(Vec<f64>, Vec<f64>)> =
        columns.iter().map(|c| (sums(c, 1), sums(c, 2))).collect();
    let cost = |from: usize, to: usize| -> f64 {
        let of = |(plain, squares): &(Vec<f64>, Vec<f64>)| {
            let sum = plain[to] - plain[from];
            (squares[to] - squares[from] - sum * sum / (to - from) as f64).max(0.0)
        };
        sums.iter().map(of).sum()
    };
    let mut best = vec![f64::INFINITY; points + 1];
    best[0] = -penalty;
    let mut before = vec![0; points + 1];
    let mut open = vec![0];
    for to in SHORTEST..=points {
        for from in &open {
            let total = best[*from] + cost(*from, to) + penalty;
            if total < best[to] {
                (best[to], before[to]) = (total, *from);
            }
        }
        open.retain(|from| best[*from] + cost(*from, to) <= best[to]);
        open.push(to + 1 - SHORTEST);
        open.retain(|from| *from == 0 || *from >= SHORTEST);
    }
    let mut changes = Vec::new();
    let mut at = points;
    while let Some(from) = before.get(at).copied().filter(|from| *from > 0 && *from < at) {
        changes.push(from);
        at = from;
    }
    changes.reverse();
    changes
}

/// Sums of the powers of values before each index.
fn sums(values: &[f64], power: i32) -> Vec<f64> {
    let add = |sum: &mut f64, value: &f64| {
        *sum += value.powi(power);
        Some(*sum)
    };
    std::iter::once(0.0).chain(values.iter().scan(0.0, add)).collect()
}

fn means(series: &Series, range: Range<usize>) -> Vec<PhaseValue> {
    let intervals = &series.intervals[range];
    let mean = |label: usize| {
        let measured = intervals.iter().filter_map(|i| Some((i, (*i.values.get(label)?)?)));
        // Longer intervals count for more.
        let (sum, time) = measured.fold((0.0, 0.0), |(sum, time), (interval, value)| {
            let length = interval.span.1 - interval.span.0;
            (sum + value * length, time + length)
        });
        (time > 0.0).then(|| sum / time)
    };
    let value = |(number, label): (usize, &String)| PhaseValue {
        label: label.clone(),
        value: mean(number),
        is_share: series.is_share,
    };
    series.labels.iter().enumerate().map(value).collect()
}

/// The functions with most samples between two times in seconds. The first sample is at the begin of the first
/// interval, but for a period.
fn functions(timeline: &Timeline, from: f64, to: f64) -> Vec<PhaseFunction> {
    let mut samples: HashMap<&StackFrame, u64> = HashMap::new();
    let mut all = 0;
    for sample in &timeline.taken.samples {
        let time = sample.time as f64 / 1e9;
        if let (true, Some(function)) = (from <= time && time < to, timeline.function(sample.stack))
        {
            *samples.entry(function).or_default() += 1;
            all += 1;
        }
    }
    let mut sorted: Vec<(&StackFrame, u64)> = samples.into_iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let function = |(frame, samples): (&StackFrame, u64)| {
        let share = samples as f64 / all as f64;
        PhaseFunction {
            name: frame.name.clone(),
            module: frame.module.clone(),
            share,
            error: half_width(share, all as f64),
        }
    };
    sorted.into_iter().take(FUNCTIONS).map(function).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two shares; noise of ±2 % that repeats every 7 intervals.
    fn two(levels: &[(usize, f64)]) -> Series {
        let mut intervals = Vec::new();
        for level in levels.iter().flat_map(|(times, level)| vec![*level; *times]) {
            let number = intervals.len();
            let share = level + 0.02 * ((number * 3 % 7) as f64 - 3.0) / 3.0;
            let span = (number as f64, number as f64 + 1.0);
            intervals.push(Interval { span, values: vec![Some(share), Some(1.0 - share)] });
        }
        let labels = vec!["Retiring".to_owned(), "Backend Bound".to_owned()];
        Series {
            title: "Level 1".to_owned(),
            labels,
            is_share: true,
            intervals,
            ..Series::default()
        }
    }

    #[test]
    fn phases_begin_where_the_level_changes() {
        let ends = |levels: &[(usize, f64)]| -> Vec<f64> {
            phases(&[two(levels)]).iter().map(|phase| phase.to).collect()
        };
        assert_eq!(ends(&[(40, 0.3)]), [40.0]);
        assert_eq!(ends(&[(40, 0.3), (25, 0.7)]), [40.0, 65.0]);
        assert_eq!(ends(&[(10, 0.3), (30, 0.7), (20, 0.5)]), [10.0, 40.0, 60.0]);
        assert_eq!(ends(&[(20_000, 0.3), (20_000, 0.7)]), [20_000.0, 40_000.0]);
        for few in 0..4 {
            assert!(phases(&[two(&[(few, 0.3)])]).len() <= 1, "{few} intervals");
        }
    }

    #[test]
    fn a_phase_has_the_mean_of_its_intervals() {
        let found = phases(&[two(&[(21, 0.3), (21, 0.7)])]);
        let value = |phase: usize| found[phase].values[0].value.expect("measured");
        // Whole periods of the noise add up to 0.
        assert!((value(0) - 0.3).abs() < 1e-9 && (value(1) - 0.7).abs() < 1e-9, "{found:?}");
        assert_eq!(found[1].values[1].label, "Backend Bound");
    }
}
