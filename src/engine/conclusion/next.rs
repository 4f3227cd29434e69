//! What to do next: at most three commands, each of which runs as it is.

use super::facts::{MUCH, is_mispredicted, kernel};
use crate::commands::{block, is_here};
use crate::documents::conclusion::Step;
use crate::documents::estimate::Row;
use crate::documents::report::{FindingKind, Report};
use crate::documents::report_code::{LoopRow, Sampled};
use crate::recorded_command::recorded;
use crate::steps::{brief_cost, cost_of_process};
use crate::topdown::LiveAsk;
use estimate::Part;
use pmu::Target;
use profile::event::EventKind;
use std::path::Path;
use std::time::Duration;
use tma::shell::quoted;

/// Most steps.
const MOST: usize = 3;
/// Code below this share of the time is not worth a step.
const LEAST: f64 = 0.05;
/// Loops below this share have no step beside that of the program.
const HOT: f64 = 0.2;
/// A loop of fewer iterations an execution is mostly its start and end.
const SHORT: f64 = 3.0;
/// The function of the kernel that page faults enter it by.
const FAULT: &str = "exc_page_fault";
/// How long a process is looked at.
const WINDOW: Duration = Duration::from_secs(1);

/// The steps, the most useful first.
pub(super) fn next(report: &Report, live: Option<&LiveAsk>) -> Vec<Step> {
    let mut steps = Vec::new();
    let of = match live {
        Some(ask) => subject(ask),
        None => of_recording(report),
    };
    steps.extend(live.and(of.as_ref()).and_then(|of| callers(report, of)));
    match &report.estimate {
        Some(estimate) => {
            let hot = estimate.loops.iter().filter(|row| row.share >= HOT);
            let rows = std::iter::once(&estimate.program).chain(hot);
            steps.extend(rows.filter_map(further));
        }
        None if report.is_counted() => {
            steps.extend(of.as_ref().and_then(|of| branches(report, of)));
            steps.extend(live.map_or(Vec::new(), |ask| deeper(report, ask)));
        }
        None => {
            // A recording may be of another event: the estimate samples the clock again.
            let is_time = |of: &&Sampled| live.is_none() || EventKind::of(&of.event).is_clock();
            let sampled = report.sampled.as_ref().filter(is_time);
            steps.extend(sampled.and(of.as_ref()).and_then(|of| estimate(report, of)));
        }
    }
    steps.extend(hottest(report, live.is_some()));
    let mut seen = Vec::new();
    steps.retain(|step| {
        let is_new = !seen.contains(&step.command);
        seen.push(step.command.clone());
        is_new
    });
    steps.truncate(MOST);
    steps
}

/// What a live measurement was of, as options of `tdtool report`.
enum Subject {
    Command(String),
    Process(i32),
}

impl Subject {
    /// At the end of a command line; a process for some seconds.
    fn options(&self) -> String {
        match self {
            Self::Command(words) => format!("-- {words}"),
            Self::Process(pid) => format!("-p {pid} --duration 5"),
        }
    }
}

fn subject(ask: &LiveAsk) -> Option<Subject> {
    match ask.target {
        Target::Command if !ask.typed.is_empty() => Some(Subject::Command(quoted(&ask.typed))),
        Target::Process(pid) => Some(Subject::Process(pid)),
        _ => None,
    }
}

/// What was recorded, if it is known and its program is here.
fn of_recording(report: &Report) -> Option<Subject> {
    let command = recorded(report.command.as_deref()?);
    is_here(command).then(|| Subject::Command(quoted(command)))
}

/// Who makes the kernel work, where that is most of the time.
fn callers(report: &Report, of: &Subject) -> Option<Step> {
    if kernel(report) < MUCH || report.callers.is_some() {
        return None;
    }
    let mut own = report.functions.iter().filter(|row| row.module.starts_with("[kernel"));
    let is_fault = report.many_faults().is_some() && own.clone().any(|row| row.name == FAULT);
    let (name, why) = match is_fault {
        true => (FAULT, "the code whose memory accesses fault".to_owned()),
        false => {
            let name = own.next()?.name.as_str();
            (name, format!("who calls {name}"))
        }
    };
    let command = format!("tdtool report --callers {} {}", quoted(&[name]), of.options());
    Some(Step { why, command })
}

/// The estimate, where there is no tree and user code that is here has time.
fn estimate(report: &Report, of: &Subject) -> Option<Step> {
    let own = report.functions.iter().filter(|row| !row.module.starts_with("[kernel"));
    let missing: f64 = own.filter(|row| row.gap.is_some()).map(|row| row.share).sum();
    if 1.0 - kernel(report) - missing < LEAST {
        return None;
    }
    let (cost, command) = match of {
        Subject::Command(words) => {
            let cost = report.duration.map_or("in further runs".to_owned(), brief_cost);
            (cost, format!("tdtool report --estimate -- {words}"))
        }
        Subject::Process(pid) => {
            (cost_of_process(WINDOW), format!("tdtool report --estimate -p {pid}"))
        }
    };
    Some(Step { why: format!("why: an estimated tree ({cost})"), command })
}

/// Which branches are mispredicted, where that is the bottleneck of a counted tree.
fn branches(report: &Report, of: &Subject) -> Option<Step> {
    let Subject::Command(words) = of else { return None };
    is_mispredicted(report).then(|| Step {
        why: "which branches are mispredicted".to_owned(),
        command: format!("tdtool count --hot --branches -- {words}"),
    })
}

/// What shows more of a row of the estimate.
fn further(row: &Row) -> Option<Step> {
    let why = match row.bottleneck.0 {
        Some(Part::BadSpeculation) => "which branches are mispredicted",
        Some(Part::MemoryBound) => "which loads miss, and where their data is",
        Some(Part::CoreBound) => "what bounds it in isolation",
        Some(Part::Retiring) => "which ports its instructions use",
        Some(Part::FetchBandwidth) => "what holds the front end up",
        Some(Part::FetchLatency) => "how large the hot code is",
        Some(Part::Unexplained) | None => "what its branches and loads do",
    };
    (!row.next.is_empty()).then(|| Step { why: why.to_owned(), command: row.next.clone() })
}

/// Below and around the bottleneck of a counted tree.
fn deeper(report: &Report, ask: &LiveAsk) -> Vec<Step> {
    let Some(Subject::Command(words)) = subject(ask) else { return Vec::new() };
    let is_found = report.findings.iter().any(|one| one.kind == FindingKind::Bottleneck);
    let step = |why: &str, option: &str| Step {
        why: why.to_owned(),
        command: format!("tdtool report {option} -- {words}"),
    };
    let mut steps = Vec::new();
    if is_found && !ask.drilldown && ask.ask.level.is_none() {
        steps.push(step("what is below the bottleneck, level by level", "--drilldown"));
    }
    let is_located =
        |node: &crate::documents::report::NodeRow| node.bottleneck && !node.locate.is_empty();
    if report.events.is_empty() && report.nodes.iter().any(is_located) {
        steps.push(step("where it happens", "--locate"));
    }
    steps
}

/// Whether a loop of the estimate is another in isolation: bound by branches that are predicted there, or left so soon that
/// it is hardly one.
fn is_other_alone(report: &Report, of: &LoopRow) -> bool {
    let mut loops = report.estimate.iter().flat_map(|estimate| &estimate.loops);
    loops.any(|row| {
        let head = row.head.as_ref().unwrap_or(&row.start);
        (&row.module, head) == (&of.code.path, &of.head)
            && (row.bottleneck.0 == Some(Part::BadSpeculation)
                || row.trips.is_some_and(|trips| trips < SHORT))
    })
}

/// The hottest loop, or block, in isolation; not where branches are what matters, as isolation predicts them.
fn hottest(report: &Report, is_live: bool) -> Option<Step> {
    // Only programs have code to measure in isolation, not jitdumps; and only those that are here.
    let is_program =
        |path: &str| path.starts_with('/') && !path.ends_with(".dump") && Path::new(path).is_file();
    let is_measured = report.blocks.iter().any(|row| row.measured.is_some());
    if is_measured || is_mispredicted(report) {
        return None;
    }
    let command = report.command.as_deref().unwrap_or_default();
    let command = if is_live { command } else { recorded(command) };
    let of_loop = report.loops.iter().find(|row| is_program(&row.code.path));
    if of_loop.is_some_and(|row| is_other_alone(report, row)) {
        return None;
    }
    if let Some(row) = of_loop.filter(|row| row.code.share >= LEAST) {
        let command = block(&row.code.path, &row.head, true, &[], command);
        return Some(Step { why: "the hottest loop in isolation".to_owned(), command });
    }
    let row = report.blocks.iter().map(|row| &row.code).find(|code| is_program(&code.path))?;
    let command = block(&row.path, &row.start, false, &[], command);
    let why = "the hottest block in isolation".to_owned();
    (row.share >= LEAST).then_some(Step { why, command })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::estimate::{Bottleneck, Estimate};
    use crate::documents::report::{NodeRow, Source};
    use crate::documents::report_code::{CodeRow, FunctionRow};

    /// A recording of this test's own program, with a hot loop.
    fn recording(command: &[&str]) -> Report {
        let own = std::env::current_exe().unwrap().display().to_string();
        let mut report = Report::new(Source::Imported);
        report.command = Some(command.iter().map(|word| word.replace("OWN", &own)).collect());
        report.sampled =
            Some(Sampled { event: "cycles".into(), samples: 100, ..Sampled::default() });
        let code = CodeRow { path: own, share: 0.9, ..CodeRow::default() };
        report.loops = vec![LoopRow { code, head: "0x20".to_owned(), ..LoopRow::default() }];
        report
    }

    fn commands(report: &Report) -> Vec<String> {
        let own = std::env::current_exe().unwrap().display().to_string();
        next(report, None).into_iter().map(|step| step.command.replace(&own, "OWN")).collect()
    }

    #[test]
    fn code_that_is_not_here_is_not_estimated() {
        let mut report = recording(&["OWN", "7"]);
        let gap = Some("/tmp/perf-7.map is not here".to_owned());
        report.functions = vec![FunctionRow { share: 0.99, gap, ..FunctionRow::default() }];
        assert!(!commands(&report).iter().any(|command| command.contains("--estimate")));
    }

    #[test]
    fn a_recording_without_counts_offers_the_estimate_of_its_command() {
        let all = ["tdtool report --estimate -- OWN 7", "tdtool block OWN:@0x20 -- 7"];
        assert_eq!(commands(&recording(&["OWN", "7"])), all);
        assert_eq!(commands(&recording(&["perf", "record", "-g", "OWN", "7"])), all);
        assert_eq!(commands(&recording(&["/usr/bin/perf", "record", "--", "OWN", "7"])), all);
        // A program of another machine.
        assert_eq!(commands(&recording(&["./not-here", "7"])), ["tdtool block OWN:0x20"]);
    }

    #[test]
    fn a_loop_of_mispredicted_branches_is_not_offered_in_isolation() {
        let speculation = Bottleneck(Some(Part::BadSpeculation));
        let mut report = recording(&["OWN"]);
        let mut estimate = Estimate::default();
        estimate.program.next = "tdtool count --branches -- x".into();
        report.estimate = Some(estimate);
        let all = ["tdtool count --branches -- x", "tdtool block OWN:@0x20 --run"];
        assert_eq!(commands(&report), all, "undecided");
        let row = Row {
            module: report.loops[0].code.path.clone(),
            start: "0x20".into(),
            bottleneck: speculation,
            ..Row::default()
        };
        report.estimate.as_mut().unwrap().loops = vec![row];
        assert_eq!(commands(&report), all[..1], "of the loop");
        let estimate = report.estimate.as_mut().unwrap();
        estimate.loops.clear();
        estimate.program.bottleneck = speculation;
        assert_eq!(commands(&report), all[..1], "of the program");
    }

    #[test]
    fn a_counted_tree_of_mispredicted_branches_leads_to_the_branches() {
        let mut report = recording(&["OWN"]);
        let node = |id: &str, label: &str, parent: Option<&str>| NodeRow {
            id: id.into(),
            label: label.into(),
            level: if parent.is_some() { 2 } else { 1 },
            parent: parent.map(Into::into),
            value: Some(0.5),
            ..NodeRow::default()
        };
        report.nodes = vec![
            node("bad_speculation", "Bad Speculation", None),
            node("mispredicts", "Mispredicts", Some("bad_speculation")),
            node("backend_bound", "Backend Bound", None),
        ];
        report.nodes[1].bottleneck = true;
        assert_eq!(commands(&report), ["tdtool count --hot --branches -- OWN"]);
        report.nodes[1].bottleneck = false;
        report.nodes[2].bottleneck = true;
        assert_eq!(commands(&report), ["tdtool block OWN:@0x20 --run"]);
    }
}
