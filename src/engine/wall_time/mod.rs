//! Divides the wall time of a live measurement: own code, the kernel by how it was entered, waiting. `words` has the
//! advice.

mod words;

use pmu::Target;
use profile::event::EventKind;
use profile::hot::{Entered, EnteredFrom, Profile, half_width};
use report::documents::Report;
use report::documents::estimate::Row;
use report::documents::wall_time::{EntryRow, TimeKind, TimeRow, TimeSource};
use tma::Address;
pub(crate) use words::verdict;

/// Most places that enter the kernel.
const PLACES: usize = 3;

/// Enters the rows, of a measured command or process whose time was sampled; `others`: processors that others kept busy
/// meanwhile.
pub(crate) fn enter(report: &mut Report, profile: &mut Profile, others: Option<f64>) {
    let is_program = matches!(report.target, None | Some(Target::Command | Target::Process(_)));
    let is_time = matches!(EventKind::of(&profile.event), EventKind::Time | EventKind::Cycles);
    if let Some(clocks) = Clocks::of(report, profile, others).filter(|_| is_program && is_time) {
        let mut rows = rows(report, profile, &clocks);
        rows.iter_mut().for_each(|row| row.advice = words::advice(report, row));
        report.wall_time = rows;
    }
}

/// Enters the calls that an estimate counted, and what follows from them.
pub(crate) fn count_calls(report: &mut Report) {
    let Some(estimate) = &report.estimate else { return };
    let calls = |entry: &EntryRow| {
        // The block with the instruction before; where that is not known, the one that it returns to.
        let has_call = |row: &&Row| {
            let is_call = |at: u64| at.checked_add(SYSCALL) == Some(entry.address.0);
            row.code.iter().any(|one| one.text == "syscall" && is_call(one.address.0))
        };
        let blocks = || estimate.blocks.iter().filter(|row| row.module == entry.module);
        let returns_to = || blocks().find(|row| row.start == Some(entry.address));
        blocks().find(has_call).or_else(returns_to)?.entries
    };
    let mut rows = std::mem::take(&mut report.wall_time);
    for row in rows.iter_mut().filter(|row| row.kind == TimeKind::SystemCalls) {
        row.from.iter_mut().for_each(|entry| entry.calls = calls(entry));
        row.advice = words::advice(report, row);
    }
    report.wall_time = rows;
}

/// Bytes of `syscall`.
const SYSCALL: u64 = 2;

/// Times of a measurement.
struct Clocks {
    /// Processor time in seconds.
    task: f64,
    /// The least and the most of the wall time that none of its threads ran.
    idle: (f64, f64),
    /// Share of the wall time that it was ready but did not run.
    queued: Option<f64>,
    /// Processors that others kept busy; 1.0 is one.
    others: Option<f64>,
}

impl Clocks {
    fn of(report: &Report, profile: &Profile, others: Option<f64>) -> Option<Self> {
        let value = |name: &str| report.software.get(name).copied().flatten();
        let wall = value("wall_ms").filter(|wall| *wall > 0.0)?;
        let task = value("task_clock_ms")?;
        let least = (1.0 - task / wall).max(0.0);
        // All its threads may run at the same time, and wait at the same time.
        let threads = profile.threads().max(1) as f64;
        let most = (1.0 - task / wall / threads).max(least);
        let queued = value("queued_ms").map(|queued| (queued / wall).min(least));
        Some(Self { task: task / 1e3, idle: (least, most), queued, others })
    }
}

fn rows(report: &Report, profile: &mut Profile, clocks: &Clocks) -> Vec<TimeRow> {
    let running = 1.0 - clocks.idle.0;
    let samples = profile.effective();
    let row = |kind, share: f64, source| {
        let error = half_width(share, samples);
        let of = |share: f64| running * share.clamp(0.0, 1.0);
        let (low, high) = (of(share - error), of(share + error));
        TimeRow { kind, share: of(share), low, high, source, ..TimeRow::default() }
    };
    let mut kernel = Vec::new();
    if report.sampled.as_ref().is_some_and(|sampled| sampled.kernel.is_some()) {
        for part in profile.entered() {
            let kind = match part.entered {
                Entered::PageFault => TimeKind::PageFaults,
                Entered::SystemCall => TimeKind::SystemCalls,
                Entered::Other => TimeKind::Kernel,
            };
            let from = part.from.iter().take(PLACES).map(|from| entry(from, running)).collect();
            kernel.push(TimeRow { from, ..row(kind, part.share, TimeSource::Sampled) });
        }
    } else if EventKind::of(&profile.event) == EventKind::Time && clocks.task > 0.0 {
        // Samples of the clock in user mode only: the processor time beside them is the kernel's.
        let own = (profile.weight() * 1e-9 / clocks.task).min(1.0);
        kernel.push(row(TimeKind::Kernel, 1.0 - own, TimeSource::Residual));
    }
    let of_kernel: f64 = kernel.iter().map(|row| row.share).sum();
    let own = 1.0 - of_kernel / running.max(f64::MIN_POSITIVE);
    let mut rows = vec![row(TimeKind::OwnCode, own.clamp(0.0, 1.0), TimeSource::Sampled)];
    rows.extend(kernel);
    rows.extend(idle(clocks));
    rows
}

/// The time that it did not run.
fn idle(clocks: &Clocks) -> Vec<TimeRow> {
    let (least, most) = clocks.idle;
    let queued = clocks.queued.unwrap_or(0.0);
    let row = |kind, share: f64, (low, high): (f64, f64)| {
        let source = TimeSource::Counted;
        TimeRow { kind, share, low, high, source, ..TimeRow::default() }
    };
    // Where it is not known whether it was ready, others had its processor at most for the time that they used any.
    let not_ready = match clocks.queued {
        Some(queued) => least - queued,
        None => (least - clocks.others.unwrap_or(1.0)).max(0.0),
    };
    let mut rows = vec![row(TimeKind::Waiting, least - queued, (not_ready, most - queued))];
    rows.extend(clocks.queued.map(|queued| row(TimeKind::NoProcessor, queued, (queued, queued))));
    rows.retain(|row| row.high > 0.0);
    rows
}

fn entry(from: &EnteredFrom, running: f64) -> EntryRow {
    EntryRow {
        name: from.name.clone(),
        module: from.module.clone(),
        address: Address(from.address),
        source: from.line.as_ref().map(|line| (line.file.clone(), line.line)),
        share: running * from.share,
        calls: None,
    }
}
