//! `-r N`: the ± of a value over the runs of the command.

use tma::counts::Counts;
use tma::tree::{Evaluator, student_t95};

/// The note on such errors.
pub(super) fn note(runs: usize) -> String {
    format!("± is the half width of the 95 % confidence interval of the mean over {runs} runs")
}

/// Half width at 95 % of the mean over `runs`, by node: t · s/√N. `None` without several runs, or
/// where the place of `counts` is not in every run.
pub(super) fn errors(
    evaluator: &mut Evaluator,
    counts: &Counts,
    runs: &[Vec<Counts>],
) -> Option<Vec<Option<f64>>> {
    if runs.len() < 2 {
        return None;
    }
    let same = |c: &&Counts| c.core == counts.core && c.scope == counts.scope;
    let all: Vec<&Counts> = runs.iter().map(|run| run.iter().find(same)).collect::<Option<_>>()?;
    let values: Vec<Vec<Option<f64>>> = all
        .iter()
        .map(|c| evaluator.values(c).nodes.iter().map(|r| r.quantity.get()).collect())
        .collect();
    let n = runs.len() as f64;
    let error = |node: usize| {
        let of_runs: Vec<f64> = values.iter().map(|run| run[node]).collect::<Option<_>>()?;
        let mean = of_runs.iter().sum::<f64>() / n;
        let squares: f64 = of_runs.iter().map(|v| (v - mean).powi(2)).sum();
        Some(student_t95(runs.len() - 1) * (squares / (n - 1.0) / n).sqrt())
    };
    Some((0..values.first()?.len()).map(error).collect())
}
