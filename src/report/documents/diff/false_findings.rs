//! Findings that chance makes in a table of many rows: of rows without a difference, one in twenty is beyond its 95 %
//! interval. The procedure of Benjamini and Hochberg (J. R. Stat. Soc. B 57, 1995) bounds the expected share of false
//! findings among all where rows are independent, or rise and fall together (Benjamini and Yekutieli, Ann. Stat. 29, 2001).
//! Shares of one whole do neither: there the bound is approximate.

use super::{Diff, DiffRow, FalseFindings, Judgement};
use std::f64::consts::PI;
use tma::tree::student_t95;

/// Expected share of false findings, at most.
const RATE: f64 = 0.05;
/// Degrees of freedom from which Student's distribution is the normal one.
const MANY: f64 = 200.0;
/// Half width of a normal 95 % interval in standard errors.
const Z95: f64 = 1.96;

/// Withdraws findings that chance may have made, and says how many. Each side is the mean of so many runs.
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
    use crate::documents::diff::Side;
    use crate::documents::report::Source;
    use crate::documents::{Report, diff};

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
