//! Runs of one program: several as one, with the mean of each value and how it varies from run to run; the errors
//! that a single run leaves out, and how to measure them.

use super::{Diff, DiffRow, Judgement};
use crate::documents::report::{InfoRow, NodeRow, Report, Source};
use crate::format;
use std::borrow::Cow;
use std::collections::BTreeMap;
use tma::tree::student_t95;
use tma::{Error, Result};

/// Their means, with the half width of the 95 % interval of each, t · s ÷ √n. One report stays as it is. A value
/// that one of them lacks is absent.
///
/// # Errors
/// There is none, or they are of different tables.
pub fn mean(reports: &[Report]) -> Result<Cow<'_, Report>> {
    let (first, rest) = reports
        .split_first()
        .ok_or_else(|| Error::usage("there is no report").hint("`tdtool diff A.json B.json`"))?;
    if rest.is_empty() {
        return Ok(Cow::Borrowed(first));
    }
    if let Some(other) = rest.iter().find(|report| report.uarch != first.uarch) {
        return Err(Error::usage("the reports of one side are of different microarchitectures")
            .because(format!("{} and {}", first.uarch, other.uarch))
            .hint("compare reports of one machine with each other"));
    }
    let mut all = first.clone();
    for (index, row) in all.nodes.iter_mut().enumerate() {
        let same = |n: &&NodeRow| n.id == row.id && n.place == row.place;
        let of = |r: &Report| {
            r.nodes.get(index).filter(same).or(r.nodes.iter().find(same)).and_then(|n| n.value)
        };
        (row.value, row.error) = interval(reports.iter().map(of));
    }
    for row in &mut all.info {
        let same = |n: &&InfoRow| n.id == row.id && n.place == row.place;
        let of = |r: &Report| r.info.iter().find(same).and_then(|n| n.value);
        (row.value, row.error) = interval(reports.iter().map(of));
    }
    all.software_error = BTreeMap::new();
    for (name, value) in &mut all.software {
        let (mean, error) =
            interval(reports.iter().map(|r| r.software.get(name).copied().flatten()));
        *value = mean;
        all.software_error.extend(error.map(|error| (name.clone(), error)));
    }
    all.duration = interval(reports.iter().map(|r| r.duration)).0;
    all.repeats = reports.iter().map(|r| r.repeats).sum();
    Ok(Cow::Owned(all))
}

/// Mean and half width, if all values are there.
pub(super) fn interval(values: impl Iterator<Item = Option<f64>>) -> (Option<f64>, Option<f64>) {
    let Some(values) = values.collect::<Option<Vec<f64>>>() else { return (None, None) };
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (Some(mean), Some(student_t95(values.len() - 1) * (squares / (n - 1.0) / n).sqrt()))
}

/// Why a condition on such a row cannot be judged.
pub(super) const UNDECIDED: &str = "one run on a side: run-to-run variation is unknown";

/// Note on functions, loops and blocks, whose samples are of one run.
const OF_CODE: &str = "samples of a side are of one run: how functions and loops vary from run to run is unknown, and not in \
                       their errors; repeat both, then `tdtool diff A1 A2 A3 --to B1 B2 B3`";

impl Diff {
    /// Whether anything of it is of one run on a side.
    pub fn has_single_runs(&self) -> bool {
        self.is_single || self.code.as_ref().is_some_and(|code| code.is_single)
    }
}

/// Limits what single runs of A and B say: a change beyond errors that leave out how runs differ is none of the
/// program yet. A note says how that is measured.
pub fn limit(diff: &mut Diff, [a, b]: [&Report; 2]) {
    let mut rows: Vec<&mut DiffRow> = Vec::new();
    if diff.is_single {
        rows.extend(diff.nodes.iter_mut().chain(&mut diff.info).chain(&mut diff.software));
    }
    let code = diff.code.as_mut().filter(|code| code.is_single);
    let (is_whole, is_any) = (diff.is_single, diff.is_single || code.is_some());
    if let Some(code) = code {
        let functions = code.program.iter_mut().chain(&mut code.functions);
        for row in functions.chain(&mut code.loops).chain(&mut code.blocks) {
            rows.push(&mut row.time);
            rows.extend(&mut row.parts);
        }
    }
    for row in rows.into_iter().filter(|row| row.is_judged()) {
        row.judgement = Judgement::OneRun;
    }
    if is_any {
        diff.notes.insert(0, if is_whole { note(a, b) } else { OF_CODE.to_owned() });
    }
}

/// Note that the spread of runs of one program is not known, and the command that measures it.
fn note(a: &Report, b: &Report) -> String {
    let command = |of: &Report| of.command.as_ref().map(|_| of.measured_program().to_vec());
    let how = match (command(a), command(b)) {
        // Equal commands are mostly two builds, of which one is there.
        (Some(a), Some(b)) if a != b && !a.is_empty() && !b.is_empty() => {
            format!(
                "`tdtool bench {} -- {}` measures it of the whole programs",
                format::command(&a),
                format::command(&b)
            )
        }
        (a_ran, _) => {
            let again = a_ran.filter(|words| !words.is_empty()).map(|words| again(a, &words));
            let again = again.map_or(String::new(), |again| format!(" (`{again}`)"));
            format!("repeat both{again}, then `tdtool diff A1 A2 A3 --to B1 B2 B3`")
        }
    };
    format!("one run on a side: run-to-run variation is unknown, and not in the errors; {how}")
}

/// The command that makes one more such file.
fn again(of: &Report, words: &[String]) -> String {
    let how = match (of.source, &of.estimate) {
        (_, Some(_)) => "report --estimate --format json",
        (Source::Session, None) => "record",
        _ => "report --format json",
    };
    format!("tdtool {how} -o FILE -- {}", format::command(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::report::Source;

    fn report(wall: Option<f64>) -> Report {
        let mut report = Report::new(Source::NoPmu);
        report.software.insert("wall_ms".into(), wall);
        report
    }

    /// By hand: 100, 102 and 104 have the mean 102 and s = 2; t of two degrees of freedom is 4.303, and
    /// 4.303 × 2 ÷ √3 is 4.968.
    #[test]
    fn the_error_is_how_much_runs_differ() {
        let all = [100.0, 102.0, 104.0].map(|wall| report(Some(wall)));
        let mean = mean(&all).unwrap();
        assert_eq!(mean.software["wall_ms"], Some(102.0));
        assert!(
            (mean.software_error["wall_ms"] - 4.968).abs() < 0.002,
            "{:?}",
            mean.software_error
        );
        assert_eq!(mean.repeats, 3);
    }

    #[test]
    fn a_value_that_one_run_lacks_is_absent() {
        let all = [report(Some(1.0)), report(None)];
        let mean = mean(&all).unwrap();
        assert_eq!((mean.software["wall_ms"], mean.software_error.get("wall_ms")), (None, None));
    }

    #[test]
    fn runs_of_different_tables_have_no_mean() {
        let other = Report { uarch: "zen4".into(), ..report(None) };
        assert!(mean(&[report(None), other]).is_err() && mean(&[]).is_err());
    }
}
