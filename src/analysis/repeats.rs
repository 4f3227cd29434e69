//! `-r N`: the ± of a value over the runs of the command.

use super::live::Core;
use crate::counts::Counts;
use crate::report::Report;
use crate::topdown::{Evaluator, student_t95};

/// Replaces the errors of `report` by t · s/√N over the runs: what the mean of N runs is known to.
pub(super) fn deviations(report: &mut Report, cores: &[Core], runs: &[Vec<Counts>]) {
    let n = runs.len() as f64;
    let t = student_t95(runs.len() - 1);
    for core in cores {
        let mut evaluator = Evaluator::new(&core.table);
        let name = &core.table.name;
        // The first run names the scopes; a scope that is not in every run gets no error.
        for counts in runs[0].iter().filter(|c| cores.len() == 1 || c.core.as_ref() == Some(name)) {
            let same = |c: &&Counts| c.core == counts.core && c.scope == counts.scope;
            let of_run = |run: &Vec<Counts>| run.iter().find(same).cloned();
            let Some(all) = runs.iter().map(of_run).collect::<Option<Vec<Counts>>>() else {
                continue;
            };
            let values: Vec<Vec<Option<f64>>> = all
                .iter()
                .map(|c| evaluator.values(c).nodes.iter().map(|r| r.quantity.get()).collect())
                .collect();
            let error_of = |id: &str| {
                let at = usize::from(core.table.node(id)?);
                let of_runs: Option<Vec<f64>> = values.iter().map(|run| run[at]).collect();
                let of_runs = of_runs?;
                let mean = of_runs.iter().sum::<f64>() / n;
                let squares: f64 = of_runs.iter().map(|v| (v - mean).powi(2)).sum();
                Some(t * (squares / (n - 1.0) / n).sqrt())
            };
            let here = |place: &crate::report::document::Place| {
                place.core == counts.core && place.scope == counts.scope
            };
            for node in report.nodes.iter_mut().filter(|r| here(&r.place)) {
                node.error = error_of(&node.id);
                node.no_error = None;
            }
            for info in report.info.iter_mut().filter(|r| here(&r.place)) {
                info.error = error_of(&info.id);
            }
        }
    }
    report.notes.push(format!(
        "± over {} runs of the command: t(95 %) · s/√{0}, of their mean",
        runs.len()
    ));
}
