//! Several reports of one program as one: the mean of each value, and how it varies from run to run.

use crate::documents::report::{InfoRow, NodeRow, Report};
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
