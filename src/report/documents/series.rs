//! Series over time: the shares of level 1, or software counts; the names of software counts, with their unit at
//! the end where they have one.

use super::report::Report;

/// CPUs that were used, of all time.
const CPUS: &str = "cpus_used";
/// Software counts that are shown over time.
const SOFTWARE: [&str; 3] = [CPUS, "page_faults", "context_switches"];

/// Values over time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// Title.
    pub title: String,
    /// Labels of an interval's values.
    pub labels: Vec<String>,
    /// Whether they are shares of a whole, 0 to 1.
    pub is_share: bool,
    /// Whether they count what happened in an interval; shares and CPUs are of a time.
    pub is_count: bool,
    /// The intervals in order.
    pub intervals: Vec<Interval>,
}

impl Series {
    /// The title with what its numbers are of.
    pub fn heading(&self) -> String {
        match self.is_count {
            true => format!("{} per interval", self.title),
            false => self.title.clone(),
        }
    }
}

/// One interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Interval {
    /// Begin and end in seconds.
    pub span: (f64, f64),
    /// Its values in the order of the labels; `None`: not measured.
    pub values: Vec<Option<f64>>,
}

/// The shares of level 1 in reports of intervals; `None` where none was measured, or there are fewer than two.
pub fn level_1(reports: &[Report]) -> Option<Series> {
    let mut nodes: Vec<(&str, &str)> = Vec::new();
    for node in reports.iter().flat_map(|r| &r.nodes).filter(|node| node.level == 1) {
        if !nodes.iter().any(|(id, _)| *id == node.id) {
            nodes.push((&node.id, &node.label));
        }
    }
    let labels: Vec<String> = nodes.iter().map(|(_, label)| (*label).to_owned()).collect();
    let of = |report: &Report| nodes.iter().map(|(id, _)| share_of(report, id)).collect();
    let shape = Series { title: "Level 1".to_owned(), labels, is_share: true, ..Series::default() };
    series(shape, reports, &of)
}

/// The software counts in reports of intervals, those that are not always 0.
pub fn software(reports: &[Report]) -> Vec<Series> {
    let value = |report: &Report, name: &str| report.software.get(name).copied().flatten();
    let is_shown = |name: &&str| reports.iter().any(|r| value(r, name).is_some_and(|v| v > 0.0));
    let of = |name: &str| {
        let title = software_label(name);
        let labels = vec![title.clone()];
        let is_count = name != CPUS;
        let shape = Series { title, labels, is_count, ..Series::default() };
        series(shape, reports, &|report| vec![value(report, name)])
    };
    SOFTWARE.into_iter().filter(is_shown).filter_map(of).collect()
}

/// `shape` with its intervals.
fn series(
    shape: Series,
    reports: &[Report],
    of: &dyn Fn(&Report) -> Vec<Option<f64>>,
) -> Option<Series> {
    let interval = |report: &Report| {
        let is_finite = |value: Option<f64>| value.filter(|v| v.is_finite());
        let values = of(report).into_iter().map(is_finite).collect();
        Some(Interval { span: report.interval?, values })
    };
    let intervals: Vec<Interval> = reports.iter().filter_map(interval).collect();
    let is_measured = intervals.iter().any(|i| i.values.iter().any(Option::is_some));
    let is_shown = intervals.len() > 1 && is_measured;
    is_shown.then_some(Series { intervals, ..shape })
}

/// A node's share where an interval has one of it; of several cores none stands for all.
fn share_of(report: &Report, id: &str) -> Option<f64> {
    let mut found = report.nodes.iter().filter(|node| node.id == id);
    let first = found.next()?;
    if found.next().is_some() { None } else { first.value }
}

/// How the name of a time ends.
const MILLISECONDS: &str = "_ms";

/// Name of a software count in texts: `task clock` of `task_clock_ms`.
pub fn software_label(name: &str) -> String {
    if name == "cpus_used" {
        return "CPUs busy".to_owned();
    }
    name.trim_end_matches(MILLISECONDS).replace('_', " ")
}

/// Its unit: `ms`, or empty for plain numbers.
pub fn software_unit(name: &str) -> &'static str {
    if is_software_time(name) { "ms" } else { "" }
}

/// Whether it is a time, in milliseconds.
pub fn is_software_time(name: &str) -> bool {
    name.ends_with(MILLISECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_its_unit_at_the_end_of_its_name() {
        assert_eq!(
            (&*software_label("task_clock_ms"), software_unit("task_clock_ms")),
            ("task clock", "ms")
        );
        assert_eq!(
            (&*software_label("page_faults"), software_unit("page_faults")),
            ("page faults", "")
        );
        assert!(is_software_time("wall_ms") && !is_software_time("cpus_used"));
    }
}
