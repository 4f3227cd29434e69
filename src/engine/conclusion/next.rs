//! Next steps: at most three commands, each of which runs as it is.

use crate::commands::{block, is_here};
use crate::left::{brief_cost, cost_of_process};
use crate::topdown::{LiveAsk, options};
use estimate::Part;
use pmu::Target;
use profile::event::EventKind;
use report::documents::estimate::Row;
use report::documents::report::{FindingKind, NodeRow, Report, Step};
use report::documents::report_code::{LoopRow, Sampled};
use report::render::width::fit;
use std::path::Path;
use std::time::Duration;
use tma::shell::quoted;
use tma::tables::Level1;

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
/// Seconds that a process is measured.
const WINDOW: Duration = Duration::from_secs(1);
/// How long what goes on is measured again.
const SECONDS: u32 = 5;

/// Columns of a function's name before a step.
const LONGEST_NAME: usize = 40;
/// From this share on the kernel is what a report is about.
pub(super) const MUCH: f64 = 0.5;

/// Share of the time in the kernel; 0 where that is not known.
pub(super) fn kernel(report: &Report) -> f64 {
    report.sampled.as_ref().and_then(|sampled| sampled.kernel).unwrap_or(0.0)
}

/// Whether mispredicted branches are the bottleneck, of the estimate or of the counted tree.
pub(super) fn is_mispredicted(report: &Report) -> bool {
    if let Some(estimate) = &report.estimate {
        return estimate.program.bottleneck.part() == Some(Part::BadSpeculation);
    }
    let parent = |node: &&NodeRow| {
        let is_it =
            |one: &&NodeRow| Some(&one.id) == node.parent.as_ref() && one.place == node.place;
        report.nodes.iter().filter(|one| one.level < node.level).find(is_it)
    };
    let lineage = |node| std::iter::successors(Some(node), parent);
    let found = report.nodes.iter().filter(|node| node.bottleneck);
    found.flat_map(lineage).any(|node| Level1::of(&node.id) == Some(Level1::BadSpeculation))
}

/// The steps, the most useful first.
pub(super) fn next(report: &Report, live: Option<&LiveAsk>) -> Vec<Step> {
    let mut steps = Vec::new();
    let of = subject(report, live.is_some());
    steps.extend(live.and(of.as_ref()).and_then(|of| callers(report, of)));
    match &report.estimate {
        Some(found) if found.is_unlike => steps.extend(of.as_ref().and_then(one_run)),
        Some(estimate) => {
            let hot = estimate.loops.iter().filter(|row| row.share >= HOT);
            let rows = std::iter::once(&estimate.program).chain(hot);
            steps.extend(rows.filter_map(further));
        }
        None if report.is_counted() => {
            steps.extend(of.as_ref().and_then(|of| branches(report, of)));
            let deeper = |(ask, of): (&LiveAsk, &Subject)| deeper(report, ask, of);
            steps.extend(live.zip(of.as_ref()).map_or(Vec::new(), deeper));
        }
        None => {
            // A recording may be of another event: the estimate samples the clock again.
            let is_time = |of: &&Sampled| live.is_none() || EventKind::of(&of.event).is_clock();
            let sampled = report.sampled.as_ref().filter(is_time);
            steps.extend(sampled.and(of.as_ref()).and_then(|of| estimate(report, of)));
        }
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

/// A measured program, as it can be measured again.
enum Subject {
    /// A command, as a shell takes it.
    Command(String),
    /// A process that runs.
    Process(i32),
    /// Something else that goes on, by its options of `tdtool report`.
    Other(String),
}

impl Subject {
    /// At the end of a command line of `tdtool report`: what goes on is measured for some seconds.
    fn options(&self) -> String {
        match self {
            Self::Command(words) => format!("-- {words}"),
            Self::Process(pid) => format!("-p {pid} --duration {SECONDS}"),
            Self::Other(options) => format!("{options} --duration {SECONDS}"),
        }
    }
}

/// The measured program, if it can be measured again: for a recording, a command whose program is here; a process that
/// still runs; or what is there anyway.
fn subject(report: &Report, is_live: bool) -> Option<Subject> {
    match report.target.as_ref() {
        None | Some(Target::Command) => {
            let command = report.measured_program();
            let is_there = if is_live { !command.is_empty() } else { is_here(command) };
            is_there.then(|| Subject::Command(quoted(command)))
        }
        Some(Target::Process(pid)) => {
            let runs = || running(report).is_some_and(|(of, _)| of == *pid);
            (is_live || runs()).then_some(Subject::Process(*pid))
        }
        Some(other) => options(other).map(Subject::Other),
    }
}

/// The process with most samples, if it still runs, and its name with its share.
fn running(report: &Report) -> Option<(i32, String)> {
    let of = report.sampled.as_ref()?.running.as_ref()?;
    let pid = i32::try_from(of.pid).ok()?;
    Some((pid, format!("{}, {:.0} % of the samples", of.name, 100.0 * of.share)))
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
        Subject::Other(_) => {
            let (pid, name) = running(report)?;
            let cost = format!("{name}; {}", cost_of_process(WINDOW));
            (cost, format!("tdtool report --estimate -p {pid}"))
        }
    };
    Some(Step { why: format!("why: an estimated tree ({cost})"), command })
}

/// The estimate of a command that does not run again as it did.
fn one_run(of: &Subject) -> Option<Step> {
    let Subject::Command(words) = of else { return None };
    let command = format!("tdtool report --estimate --duration {} -- {words}", WINDOW.as_secs());
    Some(Step { why: "from windows of one run, which is then ended".to_owned(), command })
}

/// Which branches are mispredicted, where that is the bottleneck of a counted tree.
fn branches(report: &Report, of: &Subject) -> Option<Step> {
    let of = match of {
        Subject::Command(words) => format!("-- {words}"),
        Subject::Process(pid) => format!("-p {pid}"),
        Subject::Other(_) => format!("-p {}", running(report)?.0),
    };
    is_mispredicted(report).then(|| Step {
        why: "which branches are mispredicted".to_owned(),
        command: format!("tdtool count --hot --branches {of}"),
    })
}

/// The command that shows more of a row of the estimate.
fn further(row: &Row) -> Option<Step> {
    let why = match row.leading() {
        Part::BadSpeculation => "which branches are mispredicted",
        Part::MemoryBound if row.parts.mostly_contended().is_some() => "which lines threads share",
        Part::MemoryBound if !row.parts.is_mostly_l1() => {
            "which loads miss, and where their data is"
        }
        Part::Retiring => "which ports its instructions use",
        Part::FetchBandwidth => "what holds the front end up",
        Part::FetchLatency => "how large the hot code is",
        Part::Unexplained => "what the branches and loads do",
        _ => "what bounds it in isolation",
    };
    // The whole program has no module.
    let why = match row.module.is_empty() {
        true => why.to_owned(),
        false => format!("in {}: {why}", fit(&row.name, LONGEST_NAME)),
    };
    (!row.next.is_empty()).then(|| Step { why, command: row.next.clone() })
}

/// Below and around the bottleneck of a counted tree.
fn deeper(report: &Report, ask: &LiveAsk, of: &Subject) -> Vec<Step> {
    let is_found = report.findings.iter().any(|one| one.kind == FindingKind::Bottleneck);
    let step = |why: &str, option: &str| Step {
        why: why.to_owned(),
        command: format!("tdtool report {option} {}", of.options()),
    };
    let mut steps = Vec::new();
    if is_found && !ask.drilldown && ask.ask.level.is_none() {
        steps.push(step("what is below the bottleneck, level by level", "--drilldown"));
    }
    let is_located = |node: &NodeRow| node.bottleneck && !node.locate.is_empty();
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
        (&row.module, row.head.or(row.start)) == (&of.code.path, Some(of.head))
            && (row.bottleneck.part() == Some(Part::BadSpeculation)
                || row.trips.is_some_and(|trips| trips < SHORT))
    })
}

/// The hottest loop, or block, in isolation; not where branches are what matters, as isolation predicts them.
fn hottest(report: &Report) -> Option<Step> {
    // Only programs have code to measure in isolation, not jitdumps; and only those that are here.
    let is_program =
        |path: &str| path.starts_with('/') && !path.ends_with(".dump") && Path::new(path).is_file();
    let is_measured = report.blocks.iter().any(|row| row.measured.is_some());
    let is_unlike = report.estimate.as_ref().is_some_and(|found| found.is_unlike);
    if is_measured || is_unlike || is_mispredicted(report) {
        return None;
    }
    let command = report.measured_program();
    let of_loop = report.loops.iter().find(|row| is_program(&row.code.path));
    if of_loop.is_some_and(|row| is_other_alone(report, row)) {
        return None;
    }
    if let Some(row) = of_loop.filter(|row| row.code.share >= LEAST) {
        let command = block(&row.code.path, row.head, true, &[], command);
        return Some(Step { why: "the hottest loop in isolation".to_owned(), command });
    }
    let row = report.blocks.iter().map(|row| &row.code).find(|code| is_program(&code.path))?;
    let command = block(&row.path, row.start, false, &[], command);
    let why = "the hottest block in isolation".to_owned();
    (row.share >= LEAST).then_some(Step { why, command })
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::hot::Busiest;
    use report::documents::estimate::{Bottleneck, Estimate};
    use report::documents::report::Source;
    use report::documents::report_code::{CodeRow, FunctionRow};
    use tma::Address;

    /// A recording of this test's own program, with a hot loop.
    fn recording(command: &[&str]) -> Report {
        let own = std::env::current_exe().unwrap().display().to_string();
        let mut report = Report::new(Source::Imported);
        report.command = Some(command.iter().map(|word| word.replace("OWN", &own)).collect());
        report.sampled =
            Some(Sampled { event: "cycles".into(), samples: 100, ..Sampled::default() });
        let code = CodeRow { path: own, share: 0.9, ..CodeRow::default() };
        report.loops = vec![LoopRow { code, head: Address(0x20), ..LoopRow::default() }];
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

    /// `record -a -- sleep 5`, of a process and of a control group: the command says only how long.
    #[test]
    fn a_command_beside_another_target_is_not_offered() {
        let mut report = recording(&["OWN", "5"]);
        let own = i32::try_from(std::process::id()).unwrap();
        let block = "tdtool block OWN:0x20";
        let estimate = format!("tdtool report --estimate -p {own}");
        for target in [Target::System, Target::Cgroup("a b".into()), Target::Process(own)] {
            report.sampled.as_mut().unwrap().running = None;
            report.target = Some(target);
            assert_eq!(commands(&report), [block]);
            // The process with most samples still runs.
            let running = Busiest { pid: std::process::id(), name: "own".into(), share: 0.5 };
            report.sampled.as_mut().unwrap().running = Some(running);
            assert_eq!(commands(&report), [&estimate, block]);
        }
        report.target = Some(Target::Process(own + 1));
        assert_eq!(commands(&report), [block], "another process has most samples");
        report.target = Some(Target::Command);
        assert_eq!(commands(&report)[0], "tdtool report --estimate -- OWN 5");
    }

    #[test]
    fn what_goes_on_is_measured_again_by_its_options() {
        let mut report = recording(&["sleep", "5"]);
        report.nodes = vec![NodeRow { level: 1, value: Some(0.5), ..NodeRow::default() }];
        (report.nodes[0].bottleneck, report.nodes[0].locate) = (true, vec!["cycles".to_owned()]);
        let ask = LiveAsk::of(Default::default());
        let mut of = |target: Target| {
            report.target = Some(target);
            next(&report, Some(&ask))[0].command.clone()
        };
        assert_eq!(of(Target::Command), "tdtool report --locate -- sleep 5");
        for (target, options) in [
            (Target::Process(7), "-p 7"),
            (Target::Thread(8), "-t 8"),
            (Target::System, "-a"),
            (Target::Cpus(vec![0, 2]), "-C 0,2"),
            (Target::Cgroup("a b".into()), "--cgroup 'a b'"),
        ] {
            assert_eq!(of(target), format!("tdtool report --locate {options} --duration 5"));
        }
    }

    #[test]
    fn a_loop_of_mispredicted_branches_is_not_offered_in_isolation() {
        let speculation = Bottleneck::from(Part::BadSpeculation);
        let mut report = recording(&["OWN"]);
        let mut estimate = Estimate::default();
        estimate.program.next = "tdtool count --branches -- x".into();
        report.estimate = Some(estimate);
        let all = ["tdtool count --branches -- x", "tdtool block OWN:@0x20 --run"];
        assert_eq!(commands(&report), all, "undecided");
        let row = Row {
            module: report.loops[0].code.path.clone(),
            start: Some(Address(0x20)),
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
