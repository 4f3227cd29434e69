//! Runs the collector, reports intervals as they come in, and makes the rows, findings and notes of the report from
//! its counts. With `-r N` a value has a ± over the runs of the command.

use super::{CountedCore, LiveAsk, Outcome, Update};
use crate::notes::add_new;
use crate::topdown::{advise, named, software, words};
use pmu::kernel::Kernel;
use pmu::machine::{Finding, Machine};
use pmu::perf::{self, NoHooks, RunHooks};
use pmu::{CorePlan, Interval, Measurement, Progress, Request, Target};
use report::documents::{self, Report, Source};
use tma::Result;
use tma::counts::Counts;
use tma::tables::Const;
use tma::tree::Evaluator;

/// Sees the counts themselves as they come in, beside the reports made of them.
pub(crate) trait Observer {
    /// The counts of one interval.
    fn interval(&mut self, _: &Interval) {}
    /// The counts of the whole measurement.
    fn whole(&mut self, _: &Measurement) {}
}

impl Observer for NoHooks {}

/// Followers of a measurement: `observer` of its counts, `companion` of its runs.
pub(crate) struct Beside<'a> {
    pub observer: &'a mut dyn Observer,
    pub companion: &'a mut dyn RunHooks,
    /// Measured through this one; `None`: the kernel that we run on.
    pub kernel: Option<&'a mut dyn Kernel>,
}

/// Runs the collector once (with all its repeats).
pub(super) fn collect(
    machine: &Machine,
    cores: &[CountedCore],
    ask: &LiveAsk,
    source: Source,
    update: &mut dyn FnMut(Update),
    beside: Beside,
) -> Result<Measurement> {
    let Beside { observer, companion, kernel } = beside;
    let plans = cores
        .iter()
        .map(|c| CorePlan { table: &c.table, groups: &c.groups, pmu: c.pmu.clone() })
        .collect();
    let mut request = request(machine, plans, ask);
    // Without a PMU there are no groups to run one by one.
    request.multiplex |= source == Source::NoPmu;
    perf::check(&request)?;
    if request.runs() > 1 {
        update(Update::Runs(request.runs()));
    }
    let mut evaluators: Vec<Evaluator> = cores.iter().map(|c| Evaluator::new(&c.table)).collect();
    let mut on_progress = |progress| match progress {
        Progress::Interval(interval) => {
            observer.interval(&interval);
            let report = interval_report(cores, &mut evaluators, ask, source, &interval);
            update(Update::Interval(Box::new(report)));
        }
        Progress::Interrupted { signal } => update(Update::Interrupted(signal)),
    };
    let measured = match kernel {
        Some(kernel) => perf::measure_through(kernel, &request, companion, &mut on_progress),
        None => perf::measure_with_hooks(&request, companion, &mut on_progress),
    }?;
    observer.whole(&measured);
    Ok(measured)
}

pub(crate) fn request<'a>(
    machine: &'a Machine,
    cores: Vec<CorePlan<'a>>,
    ask: &LiveAsk,
) -> Request<'a> {
    Request {
        command: ask.command.clone(),
        aggregate: ask.aggregate,
        inherit: ask.inherit,
        user_only: ask.user_only,
        multiplex: ask.multiplex,
        repeats: ask.repeats,
        delay: ask.delay,
        duration: ask.duration,
        interval: ask.interval,
        control: ask.control.clone(),
        ..Request::new(machine, cores, ask.target.clone())
    }
}

/// The whole report of a finished measurement.
pub(super) fn conclude(
    cores: &[CountedCore],
    ask: &LiveAsk,
    source: Source,
    blocked: Option<Finding>,
    measured: &Measurement,
) -> Outcome {
    let mut report = head(cores, ask, source);
    report.notes.extend(ask.core.warning().into_iter().chain(ask.core.identity_note()));
    report.notes.extend(cores.iter().filter_map(|c| c.note.clone()));
    let mut evaluators: Vec<Evaluator> = cores.iter().map(|c| Evaluator::new(&c.table)).collect();
    fill(&mut report, cores, &mut evaluators, &measured.counts, &measured.repeats);
    report.duration = Some(measured.software.wall.as_secs_f64());
    software::enter(&mut report, software::live(&measured.software));
    software::enter_error(&mut report, &measured.software);
    if ask.repeats > 1 && measured.runs.len() > 1 {
        report.repeats = u32::try_from(measured.runs.len()).unwrap_or(u32::MAX);
        software::enter_errors(&mut report, &measured.runs);
        report.notes.push(note(measured.runs.len()));
    }
    report.exit = measured.exit.map(documents::Exit::from);
    notes(&mut report, cores, measured);
    report.findings.extend(blocked.as_ref().map(not_measured));
    Outcome {
        report,
        exit: measured.exit,
        interrupted: measured.interrupted,
        blocked,
        of_control: measured.of_control.clone(),
    }
}

/// The obstacle to the whole tree, as a finding of the report.
fn not_measured(blocked: &Finding) -> documents::Finding {
    let cause = blocked.cause.as_ref().map(|c| format!(": {c}")).unwrap_or_default();
    documents::Finding {
        kind: documents::FindingKind::NotMeasured,
        node: None,
        text: format!("{}{cause}.", blocked.what),
        meaning: None,
        causes: None,
        next: blocked.remedy.clone(),
        place: documents::report::Place::default(),
    }
}

/// The report's frame: table, subject, command.
fn head(cores: &[CountedCore], ask: &LiveAsk, source: Source) -> Report {
    let mut report = Report::new(source);
    let names: Vec<&str> = cores.iter().map(|c| c.table.name.as_str()).collect();
    report.uarch = names.join("+");
    report.title = cores.first().map(|c| c.table.title.clone()).unwrap_or_default();
    report.level = cores.iter().map(|c| c.chosen.level).max().unwrap_or(0);
    report.subject = vec![subject(ask.reported(), &ask.typed)];
    report.command = (!ask.typed.is_empty()).then(|| ask.typed.clone());
    report.target = Some(ask.reported().clone());
    report
}

fn subject(target: &Target, typed: &[String]) -> String {
    let name = match target {
        Target::Process(pid) => named(*pid).map(|name| format!("{name} ({pid})")),
        _ => None,
    };
    name.or_else(|| words(target)).unwrap_or_else(|| typed.join(" "))
}

/// Adds the rows of all counts.
fn fill(
    report: &mut Report,
    cores: &[CountedCore],
    evaluators: &mut [Evaluator],
    counts: &[Counts],
    runs: &[Vec<Counts>],
) {
    for c in counts {
        let of =
            |core: &CountedCore| cores.len() == 1 || c.core.as_deref() == Some(&core.table.name);
        let Some(at) = cores.iter().position(of) else { continue };
        let core = &cores[at];
        let over_runs = errors(&mut evaluators[at], c, runs).unwrap_or_default();
        let mut evaluation = evaluators[at].evaluate(c);
        // In place of this run's: flags and rows use the same.
        for (node, error) in evaluation.nodes.iter_mut().zip(over_runs) {
            node.quantity.error = error.ok_or_else(|| "not measured in every run".into());
        }
        let mut part = documents::part(&core.table, c, &evaluation, &core.chosen.selection);
        advise(core.texts, &core.table, &mut part.findings);
        // Without counts only constants of the machine have values: they say nothing of the program.
        let is_counted = report.source != Source::NoPmu;
        part.info.retain(|i| i.value.is_some() == is_counted);
        report.add(part);
        add_new(&mut report.notes, c.notes.clone());
    }
}

/// The document of one interval.
fn interval_report(
    cores: &[CountedCore],
    evaluators: &mut [Evaluator],
    ask: &LiveAsk,
    source: Source,
    interval: &Interval,
) -> Report {
    let mut report = head(cores, ask, source);
    fill(&mut report, cores, evaluators, &interval.counts, &[]);
    report.duration = Some((interval.span.1 - interval.span.0).as_secs_f64());
    report.interval = Some((interval.span.0.as_secs_f64(), interval.span.1.as_secs_f64()));
    software::enter(&mut report, software::live(&interval.software));
    report
}

fn notes(report: &mut Report, cores: &[CountedCore], measured: &Measurement) {
    report.notes.extend(measured.notes.iter().cloned());
    let total: f64 = measured.core_time.iter().map(|(_, t)| t.as_secs_f64()).sum();
    for (name, time) in &measured.core_time {
        let share = 100.0 * time.as_secs_f64() / total.max(f64::MIN_POSITIVE);
        report
            .notes
            .push(format!("{share:.1} % of the CPU time was spent on cores of kind {name}"));
    }
    for core in cores {
        for (event, why) in &core.plan.unschedulable {
            let event = &core.table.events[usize::from(*event)].name;
            report.notes.push(format!("{event} cannot be counted: {why}"));
        }
    }
    for core in cores {
        shared_core_note(report, core, &measured.counts);
    }
    report.notes.dedup();
}

/// Before Ice Lake a core's two threads share what the slots are counted from.
fn shared_core_note(report: &mut Report, core: &CountedCore, counts: &[Counts]) {
    let smt_on = |c: &Counts| c.constants[Const::SmtOn.index()].is_some_and(|v| v != 0.0);
    let reads_both = core.chosen.selection.tree.iter().any(|&n| {
        let events = core.table.events_of(n, true);
        events.iter().any(|e| core.table.events[usize::from(*e)].spec.any)
    });
    if reads_both && counts.iter().any(smt_on) {
        report.notes.push(
            "SMT is on: core clocks are half of what both threads of a core count together, so \
             the tree of one process is approximate; -a --per-core measures both threads"
                .into(),
        );
    }
}

/// The note on such errors.
fn note(runs: usize) -> String {
    format!("± is the half width of the 95 % confidence interval of the mean over {runs} runs")
}

/// Half width at 95 % of the mean over `runs`, by node: t · s/√N. `None` without several runs, or
/// where the place of `counts` is not in every run.
fn errors(
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
    let error = |node: usize| {
        let of_runs: Vec<f64> = values.iter().map(|run| run[node]).collect::<Option<_>>()?;
        Some(software::error_of_mean(&of_runs))
    };
    Some((0..values.first()?.len()).map(error).collect())
}
