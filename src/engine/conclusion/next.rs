//! What to do next: at most three commands, each of which runs as it is.

use super::facts::{MUCH, faults, is_counted, kernel};
use crate::commands::block;
use crate::documents::conclusion::Step;
use crate::documents::estimate::Row;
use crate::documents::report::{FindingKind, Report};
use crate::estimate::{brief_cost, cost_of_process};
use crate::topdown::LiveAsk;
use pmu::Target;
use std::path::Path;
use std::time::Duration;
use tma::shell::quoted;

/// Most steps.
const MOST: usize = 3;
/// Code below this share of the time is not worth a step.
const LEAST: f64 = 0.05;
/// Loops below this share have no step beside that of the program.
const HOT: f64 = 0.2;
/// The function of the kernel that page faults enter it by.
const FAULT: &str = "exc_page_fault";
/// How long a process is looked at.
const WINDOW: Duration = Duration::from_secs(1);

/// The steps, the most useful first.
pub(super) fn next(report: &Report, live: Option<&LiveAsk>) -> Vec<Step> {
    let mut steps = Vec::new();
    let of = live.and_then(subject);
    steps.extend(of.as_ref().and_then(|of| callers(report, of)));
    match &report.estimate {
        Some(estimate) => {
            let hot = estimate.loops.iter().filter(|row| row.share >= HOT);
            let rows = std::iter::once(&estimate.program).chain(hot);
            steps.extend(rows.filter_map(further));
        }
        None if is_counted(report) => {
            steps.extend(live.map_or(Vec::new(), |ask| deeper(report, ask)))
        }
        None => steps.extend(of.as_ref().and_then(|of| estimate(report, of))),
    }
    steps.extend(hottest(report));
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

/// Who makes the kernel work, where that is most of the time.
fn callers(report: &Report, of: &Subject) -> Option<Step> {
    if kernel(report) < MUCH || report.callers.is_some() {
        return None;
    }
    let mut own = report.functions.iter().filter(|row| row.module.starts_with("[kernel"));
    let is_fault = faults(report).is_some() && own.clone().any(|row| row.name == FAULT);
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

/// The estimate, where there is no tree and user code has time.
fn estimate(report: &Report, of: &Subject) -> Option<Step> {
    let sampled = report.sampled.as_ref()?;
    if !sampled.event.contains("clock") || 1.0 - kernel(report) < LEAST {
        return None;
    }
    let (cost, command) = match of {
        Subject::Command(words) => {
            (brief_cost(report.duration?), format!("tdtool report --estimate -- {words}"))
        }
        Subject::Process(pid) => {
            (cost_of_process(WINDOW), format!("tdtool report --estimate -p {pid}"))
        }
    };
    Some(Step { why: format!("why: an estimated tree ({cost})"), command })
}

/// What shows more of a row of the estimate.
fn further(row: &Row) -> Option<Step> {
    let why = match row.bottleneck.as_str() {
        "bad_speculation" => "which branches are mispredicted",
        "memory_bound" => "which loads miss, and where their data is",
        "core_bound" => "what bounds it with its data in the first cache",
        "retiring" => "which ports its instructions use",
        "fetch_bandwidth" => "what holds the front end up",
        "fetch_latency" => "how large the hot code is",
        _ => "what its branches and loads do",
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

/// The hottest loop, or block, in isolation.
fn hottest(report: &Report) -> Option<Step> {
    // Only programs have code to measure in isolation, not jitdumps; and only those that are here.
    let is_program =
        |path: &str| path.starts_with('/') && !path.ends_with(".dump") && Path::new(path).is_file();
    if report.blocks.iter().any(|row| row.measured.is_some()) {
        return None;
    }
    let command = report.command.as_deref().unwrap_or_default();
    let of_loop = report.loops.iter().find(|row| is_program(&row.path));
    if let Some(row) = of_loop.filter(|row| row.share >= LEAST) {
        let command = block(&row.path, &row.head, true, &[], command);
        return Some(Step { why: "the hottest loop in isolation".to_owned(), command });
    }
    let row = report.blocks.iter().find(|row| is_program(&row.path))?;
    let command = block(&row.path, &row.start, false, &[], command);
    let why = "the hottest block in isolation".to_owned();
    (row.share >= LEAST).then_some(Step { why, command })
}
