//! Judges differences: conditions by the rows of a comparison, and how many findings chance makes in a table of
//! many rows: without a difference, one row in twenty is beyond its 95 % interval.

use super::row::CodeRow;
use super::runs::UNDECIDED;
use super::{Condition, Crossing, Diff, DiffRow, FalseFindings, Gate, Judgement};
use std::f64::consts::PI;
use tma::error::nearest;
use tma::tree::student_t95;
use tma::{Error, Result};

/// Other names of rows.
const ALIASES: [(&str, &str); 3] =
    [("time", "wall_ms"), ("wall", "wall_ms"), ("cpu_time", "task_clock_ms")];

/// Why a line is undecided.
const NO_ERROR: &str = "its error is not known";

/// Why a line that holds may be crossed after all.
const REACHES: &str = "its error reaches across: more runs would tell";

/// Judges conditions of [`conditions`](super::conditions) and adds what came of them.
///
/// # Errors
/// A condition is about a row that is not there.
pub fn judge(diff: &mut Diff, conditions: &[Condition]) -> Result<()> {
    diff.gates = conditions.iter().map(|one| one.judge(diff)).collect::<Result<_>>()?;
    Ok(())
}

impl Condition {
    /// Judges every row of this name, and functions: the worst counts.
    ///
    /// # Errors
    /// There is no such row.
    fn judge(&self, diff: &Diff) -> Result<Gate> {
        let all = || diff.nodes.iter().chain(&diff.info).chain(&diff.software);
        let functions = || diff.code.iter().flat_map(|code| &code.functions);
        let wanted = plain(&self.name);
        let alias =
            ALIASES.iter().find(|(name, _)| *name == wanted).map_or(wanted.as_str(), |(_, id)| *id);
        let is_it = |row: &&DiffRow| plain(&row.id) == alias || plain(&row.label) == wanted;
        // A report of several runs has the samples of one.
        let is_code_single = diff.code.as_ref().is_some_and(|code| code.is_single);
        let of_function = |row: &CodeRow| self.of(&row.time, is_code_single);
        let gates = all().filter(is_it).map(|row| self.of(row, diff.is_single));
        let gates = gates.chain(functions().filter(|row| is_it(&&row.time)).map(of_function));
        let severity = |gate: &Gate| match gate.crossing {
            Crossing::Crossed => 2,
            Crossing::Undecided => 1,
            Crossing::Held => 0,
        };
        gates.max_by_key(severity).ok_or_else(|| {
            let names = all().chain(functions().map(|row| &row.time)).map(|row| row.id.as_str());
            let names = names.chain(ALIASES.iter().map(|(name, _)| *name));
            let near = nearest(&self.name, names).map(|name| format!("did you mean `{name}`?"));
            Error::usage(format!("the reports have no `{}`", self.name)).hint(
                near.unwrap_or_else(|| "`tdtool diff A B --format json` has all ids".to_owned()),
            )
        })
    }

    /// Judges a row. On whichever side of the line a single run is, another one may be on the other.
    fn of(&self, row: &DiffRow, is_single: bool) -> Gate {
        let is_share = row.unit == "ratio";
        let (scale, unit) = match (self.is_relative, is_share) {
            (true, _) => (row.a.filter(|a| *a != 0.0).map(|a| 100.0 / a.abs()), "%"),
            (false, true) => (Some(100.0), "points"),
            (false, false) => (Some(1.0), row.unit.as_str()),
        };
        let scaled = |value: Option<f64>| Some(value? * scale?);
        let (change, margin) = (scaled(row.difference), scaled(row.margin));
        let is_across =
            |change: f64| if self.is_above { change > self.bound } else { change < self.bound };
        let (crossing, reason) = match (change, margin) {
            (None, _) if row.difference.is_some() => (Crossing::Undecided, Some("it is 0 in A")),
            (None, _) => (Crossing::Undecided, Some("it was not measured on both sides")),
            _ if is_single => (Crossing::Undecided, Some(UNDECIDED)),
            (Some(_), None) => (Crossing::Undecided, Some(NO_ERROR)),
            (Some(change), Some(margin)) if is_across(change) && change.abs() > margin => {
                (Crossing::Crossed, None)
            }
            (Some(change), Some(margin)) => {
                let is_near = is_across(change - margin) || is_across(change + margin);
                (Crossing::Held, is_near.then_some(REACHES))
            }
        };
        let (condition, unit) = (self.to_string(), unit.to_owned());
        Gate { condition, change, margin, unit, crossing, reason: reason.map(str::to_owned) }
    }
}

/// Names without case, and without the difference between `_`, `-` and a blank.
fn plain(name: &str) -> String {
    name.to_lowercase().replace([' ', '-'], "_")
}

/// Expected share of false findings, at most.
const RATE: f64 = 0.05;
/// Degrees of freedom from which Student's distribution is the normal one.
const MANY: f64 = 200.0;
/// Half width of a normal 95 % interval in standard errors.
const Z95: f64 = 1.96;

/// Withdraws findings that chance may have made, and says how many. Each side is the mean of so many runs.
///
/// The procedure of Benjamini and Hochberg (J. R. Stat. Soc. B 57, 1995) bounds the expected share of false findings
/// among all where rows are independent, or rise and fall together (Benjamini and Yekutieli, Ann. Stat. 29, 2001).
/// Shares of one whole do neither: there the bound is approximate.
pub fn control(diff: &mut Diff, runs: [usize; 2]) {
    let mut rows: Vec<&mut DiffRow> =
        diff.nodes.iter_mut().chain(&mut diff.info).chain(&mut diff.software).collect();
    let mut pieces = Vec::new();
    if let Some(code) = &mut diff.code {
        let all = code.program.iter_mut().chain(&mut code.functions);
        for row in all.chain(&mut code.loops).chain(&mut code.blocks) {
            rows.push(&mut row.time);
            pieces.push(&mut row.parts);
        }
    }
    let is_changed = rows.iter().skip(rows.len() - pieces.len()).map(|row| row.is_judged());
    let was_changed: Vec<bool> = is_changed.collect();
    let first_piece = rows.len() - pieces.len();
    let (judged, withdrawn) = withdraw(&mut rows, runs);
    // Parts are of interest where the time itself changed: a table of their own, row by row.
    for (number, parts) in pieces.into_iter().enumerate() {
        let time_stays = rows[first_piece + number].is_judged() || !was_changed[number];
        let mut parts: Vec<&mut DiffRow> = parts.iter_mut().collect();
        match time_stays {
            true => _ = withdraw(&mut parts, runs),
            false => parts.iter_mut().for_each(|part| withdraw_one(part)),
        }
    }
    if withdrawn > 0 {
        let plural = if withdrawn == 1 { "row is" } else { "rows are" };
        diff.notes.push(format!(
            "{withdrawn} {plural} beyond the row's own errors, as chance makes some of {judged}: not judged a \
             change (Benjamini-Hochberg, at most 5 % false)"
        ));
    }
    diff.false_findings = (judged > 0).then_some(FalseFindings {
        method: "Benjamini-Hochberg",
        rate: RATE,
        rows: judged,
        withdrawn,
    });
}

fn withdraw_one(row: &mut DiffRow) {
    if row.is_judged() {
        row.judgement = Judgement::Same;
    }
}

/// Withdraws what is not significant among the rows; how many were judged, and how many were withdrawn.
fn withdraw(rows: &mut [&mut DiffRow], runs: [usize; 2]) -> (usize, usize) {
    let chances: Vec<Option<f64>> = rows.iter().map(|row| chance(row, runs)).collect();
    let mut sorted: Vec<f64> = chances.iter().flatten().copied().collect();
    sorted.sort_by(f64::total_cmp);
    let number = sorted.len();
    let bound = |rank: usize| RATE * (rank + 1) as f64 / number as f64;
    let last = sorted.iter().enumerate().rev().find(|(rank, p)| **p <= bound(*rank));
    let limit = last.map(|(_, p)| *p);
    let mut withdrawn = 0;
    for (row, chance) in rows.iter_mut().zip(chances) {
        let stays = chance.is_some_and(|p| limit.is_some_and(|limit| p <= limit));
        if row.is_judged() && !stays {
            withdraw_one(row);
            withdrawn += 1;
        }
    }
    (number, withdrawn)
}

/// The chance of a difference as large as the row's where there is none; nothing of a row without errors.
fn chance(row: &DiffRow, runs: [usize; 2]) -> Option<f64> {
    let difference = row.difference?.abs();
    let errors = [row.a_error?, row.b_error?];
    let of = |side: usize| {
        let degrees = runs[side].saturating_sub(1);
        let width = if degrees == 0 { Z95 } else { student_t95(degrees) };
        let variance = (errors[side] / width).powi(2);
        // A single run's error is of samples or readings, which are many.
        (variance, if degrees == 0 { 0.0 } else { variance * variance / degrees as f64 })
    };
    let (a, b) = (of(0), of(1));
    let variance = a.0 + b.0;
    if variance == 0.0 {
        return Some(if difference > 0.0 { 0.0 } else { 1.0 });
    }
    // Welch and Satterthwaite (Biometrika 34, 1947), rounded down.
    let degrees = variance * variance / (a.1 + b.1);
    Some(two_sided(difference / variance.sqrt(), degrees))
}

/// The chance that |t| is larger under Student's distribution with so many degrees of freedom: the finite sums for whole
/// degrees of Abramowitz and Stegun 26.7.3 and 26.7.4.
fn two_sided(t: f64, degrees: f64) -> f64 {
    if degrees >= MANY {
        return normal(t);
    }
    let degrees = (degrees.floor() as usize).max(1);
    let angle = (t / (degrees as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let is_odd = degrees % 2 == 1;
    let (mut term, mut sum) = if is_odd { (cosine, cosine) } else { (1.0, 1.0) };
    let mut next = if is_odd { 3 } else { 2 };
    while next < degrees {
        term *= cosine * cosine * (next - 1) as f64 / next as f64;
        sum += term;
        next += 2;
    }
    let inside = match (is_odd, degrees) {
        (true, 1) => 2.0 / PI * angle,
        (true, _) => 2.0 / PI * (angle + sine * sum),
        (false, _) => sine * sum,
    };
    (1.0 - inside).clamp(0.0, 1.0)
}

/// p-value under the normal distribution: Abramowitz and Stegun 7.1.26, to 1.5e-7.
fn normal(z: f64) -> f64 {
    let x = z / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let factors = [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592];
    factors.iter().fold(0.0, |sum, factor| (sum + factor) * t) * (-x * x).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::diff::{self, Side, conditions, diff};
    use crate::documents::report::{NodeRow, Report, Source};
    use smol_str::SmolStr;

    /// Comparison of `runs` on each side: 100 ms ± 3 and 40 % ± 3 on one; other values on the other.
    fn compared(runs: u32, wall: f64, error: Option<f64>, share: f64) -> Diff {
        let of = |wall: f64, error: Option<f64>, share: f64| {
            let mut report = Report::new(Source::NoPmu);
            report.software.insert("wall_ms".into(), Some(wall));
            report.software_error.extend(error.map(|error| ("wall_ms".to_owned(), error)));
            let id: SmolStr = "Backend_Bound".into();
            let (value, error) = (Some(share), Some(0.03));
            report.nodes.push(NodeRow {
                label: id.clone(),
                id,
                level: 1,
                value,
                error,
                ..NodeRow::default()
            });
            report
        };
        let [mut a, mut b] = [of(100.0, error, 0.40), of(wall, error, share)];
        [a.repeats, b.repeats] = [runs; 2];
        diff("a", &a, "b", &b)
    }

    fn judged(diff: &Diff, text: &str) -> Gate {
        conditions(text).unwrap()[0].judge(diff).unwrap()
    }

    /// By hand: errors of 3 and 3 make a margin of 4.24.
    #[test]
    fn a_line_is_crossed_by_what_is_beyond_it_and_beyond_the_error() {
        let slower = compared(5, 110.0, Some(3.0), 0.50);
        let time = judged(&slower, "time > +5%");
        assert_eq!((time.crossing, time.unit.as_str()), (Crossing::Crossed, "%"));
        assert!(
            (time.change.unwrap() - 10.0).abs() < 1e-9
                && (time.margin.unwrap() - 4.243).abs() < 1e-3
        );
        assert_eq!(judged(&slower, "wall_ms > 11").crossing, Crossing::Held);
        let points = judged(&slower, "backend bound > +3");
        assert_eq!((points.crossing, points.unit.as_str()), (Crossing::Crossed, "points"));
        assert_eq!(judged(&slower, "Backend_Bound < -3").crossing, Crossing::Held);
        // Over the line, or near it, but within the error: nothing is established.
        for wall in [104.0, 102.0] {
            let near = judged(&compared(5, wall, Some(3.0), 0.4), "time > 3%");
            assert_eq!((near.crossing, near.reason.is_some()), (Crossing::Held, true), "{near:?}");
        }
        assert_eq!(judged(&slower, "time > 15%").reason, None, "10 + 4.24 is below it");
    }

    /// A node's error of one run is of its counters: whatever the difference is, another run may be on the other side.
    #[test]
    fn a_single_run_decides_nothing() {
        let (single, several) = (compared(1, 110.0, None, 0.5), compared(5, 110.0, None, 0.5));
        for line in ["time > 5%", "time > 20%", "time < -5%", "Backend_Bound > 3"] {
            let gate = judged(&single, line);
            assert_eq!(gate.crossing, Crossing::Undecided, "{line}");
            assert!(gate.reason.unwrap().contains("one run on a side"));
        }
        assert_eq!(judged(&several, "time > 20%").crossing, Crossing::Undecided, "no error");
        assert_eq!(judged(&several, "Backend_Bound > 3").crossing, Crossing::Crossed);
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        let named = conditions("map<int, long>::at > +5%, time > 3").unwrap();
        assert_eq!(named.len(), 2);
        assert_eq!(named[0].to_string(), "map<int, long>::at > +5%");
        for text in ["", "ipc", "ipc < x", "< 3", "ipc < 3 points", "time > NaN%", ","] {
            assert!(conditions(text).is_err(), "{text}");
        }
        assert_eq!(conditions("a<1, b>+2%").unwrap()[1].to_string(), "b > +2%");
        let error = conditions("Backend_Bond > 3").unwrap()[0]
            .judge(&compared(1, 1.0, None, 0.4))
            .unwrap_err();
        assert!(error.remedy().unwrap().contains("Backend_Bound"), "{error:?}");
    }

    /// Quantiles of tables of Student's distribution (Abramowitz and Stegun, table 26.10).
    #[test]
    fn chances_are_those_of_tables() {
        let quantiles =
            [(12.706, 1.0), (4.303, 2.0), (3.182, 3.0), (2.571, 5.0), (2.228, 10.0), (1.960, 1e9)];
        for (t, degrees) in quantiles {
            let p = two_sided(t, degrees);
            assert!((p - 0.05).abs() < 1e-4, "{p} of {t} with {degrees}");
        }
        assert!((two_sided(9.925, 2.0) - 0.01).abs() < 1e-4);
        assert!((two_sided(4.032, 5.0) - 0.01).abs() < 1e-4);
    }

    fn rows(differences: &[f64]) -> Diff {
        let mut all =
            diff::diff("a", &Report::new(Source::NoPmu), "b", &Report::new(Source::NoPmu));
        let side = |value: f64| Side { value: Some(value), error: Some(Z95), ..Side::default() };
        let row =
            |z: &f64| DiffRow::of(&side(0.0), Some(&side(0.0)), Some(&side(z * 2.0_f64.sqrt())));
        all.nodes = differences.iter().map(row).collect();
        all
    }

    fn found(differences: &[f64]) -> usize {
        let mut all = rows(differences);
        control(&mut all, [1, 1]);
        all.nodes.iter().filter(|row| row.is_judged()).count()
    }

    /// By hand, standard errors of the difference: 2.0 has p = 0.0455, over 0.05/20; of 20 rows one is
    /// expected beyond 1.96 by chance.
    #[test]
    fn one_row_of_many_is_chance_and_a_large_one_is_not() {
        let mut rows = vec![0.5; 19];
        rows.push(2.0);
        assert_eq!(found(&[2.0]), 1, "a row alone is judged by its own errors");
        assert_eq!(found(&rows), 0);
        rows[0] = 6.0;
        assert_eq!(found(&rows), 1);
    }

    /// The example of Benjamini and Hochberg (1995, section 3.2): of 15 p-values four are found at 5 %.
    #[test]
    fn the_example_of_the_paper() {
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0,
        ];
        let z = p.map(|p| {
            let (mut low, mut high) = (0.0, 10.0);
            for _ in 0..60 {
                let middle = (low + high) / 2.0;
                if normal(middle) > p { low = middle } else { high = middle }
            }
            (low + high) / 2.0
        });
        assert_eq!(found(&z), 4);
    }
}
