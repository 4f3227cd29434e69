//! Sentences on the wall time: what it goes to outside of the program's own code, and what may shorten it.

use report::documents::Report;
use report::documents::wall_time::{EntryRow, TimeKind, TimeRow};
use report::format;

/// Above this share of own code, kernel and waiting, the time without a processor is too little to mention.
const NEARLY_ALL: f64 = 0.95;
/// Parts below this share have no advice.
const WORTH: f64 = 0.05;
/// Share of the faults that read from storage from which these are what matters.
const MAJOR: f64 = 0.1;
/// Context switches a call from which calls hand over to other threads.
const HANDS_OVER: f64 = 0.3;
/// The kernel's setting of transparent huge pages, its choice in brackets.
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Figures on a part, and what may shorten it; none where it is not worth it.
pub(super) fn advice(report: &Report, row: &TimeRow) -> Option<String> {
    if row.share < WORTH {
        return None;
    }
    match row.kind {
        TimeKind::OwnCode => None,
        TimeKind::PageFaults => faults(report, row),
        TimeKind::SystemCalls => Some(calls(report, row)),
        TimeKind::Kernel => kernel(report),
        TimeKind::Waiting => Some(waiting(report)),
        TimeKind::NoProcessor => {
            Some("other processes had its processors: measure on a quiet machine".to_owned())
        }
    }
}

/// The part that most of the wall time goes to, in a sentence, if that is not the program's own code: processors that
/// others had do not count.
pub(crate) fn verdict(report: &Report) -> Option<String> {
    let rows = report.wall_time.iter().filter(|row| row.kind != TimeKind::NoProcessor);
    let own: f64 = rows.clone().map(|row| row.share).sum();
    let most = rows.clone().max_by(|a, b| a.low.total_cmp(&b.low))?;
    let mut others = rows.filter(|row| row.kind != most.kind);
    let other = others.find(|row| row.high >= most.low);
    if most.kind == TimeKind::OwnCode || other.is_some_and(|row| row.kind != TimeKind::Waiting) {
        return None;
    }
    let less = if own < NEARLY_ALL { ", less that of other processes," } else { "" };
    let share = format!("{:.0} % of the wall time{less}", 100.0 * most.share / own);
    let may = other.map_or(String::new(), |row| {
        let what = if row.low < row.share { "not run" } else { "wait" };
        format!("; it may {what} for up to {:.0} %", 100.0 * row.high)
    });
    let who = names(most).map_or(String::new(), |names| format!(", most by {names}"));
    Some(match most.kind {
        TimeKind::Waiting if most.low < most.share => {
            format!("For {share} it does not run: it waits, or others have the processors.")
        }
        TimeKind::Waiting => format!("For {share} it waits: none of its threads is ready to run."),
        TimeKind::Kernel => format!("{share} goes to the kernel{may}."),
        kind => format!("{share} goes to {}{who}{may}.", kind.label()),
    })
}

/// Names of its first places, with the lines that fault.
fn names(row: &TimeRow) -> Option<String> {
    let name = |entry: &EntryRow| match row.kind {
        TimeKind::SystemCalls => call_of(&entry.name).to_owned(),
        _ => {
            let source = entry.source.as_ref();
            let at = source.and_then(|(file, line)| format::source(Some(file), Some(*line)));
            format!("{}{}", entry.name, at.map_or(String::new(), |at| format!(" ({at})")))
        }
    };
    let most = row.from.first()?.share;
    let worth = row.from.iter().filter(|entry| entry.share >= most / 4.0 && !entry.name.is_empty());
    let all: Vec<String> = worth.map(name).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// The system call of a function of glibc that does little else: `__GI___libc_write` is `write`.
fn call_of(name: &str) -> &str {
    name.trim_start_matches("__GI_").trim_start_matches('_').trim_start_matches("libc_")
}

fn count(report: &Report, name: &str) -> Option<f64> {
    report.software.get(name).copied().flatten()
}

/// Number and cost of page faults, and the code with most of them.
fn faults(report: &Report, row: &TimeRow) -> Option<String> {
    let task = count(report, "task_clock_ms").filter(|task| *task > 0.0)? / 1e3;
    let faults = count(report, "page_faults").filter(|faults| *faults > 0.0)?;
    let wall = count(report, "wall_ms")? / 1e3;
    let each = 1e6 * row.share * wall / faults;
    let rate = format!("{} page faults a second of processor time", format::number(faults / task));
    let who = names(row).map_or(String::new(), |names| format!(", most in {names}"));
    let major = count(report, "major_faults").unwrap_or(0.0);
    if major >= MAJOR * faults {
        let of = format::count(major);
        return Some(format!(
            "{rate}, {each:.1} µs each{who}; {of} read from storage: read ahead (MADV_WILLNEED, MAP_POPULATE)"
        ));
    }
    let huge = match std::fs::read_to_string(HUGE_PAGES).unwrap_or_default() {
        set if set.contains("[always]") => "huge pages for areas of 2 MB and more are on here",
        set if set.contains("[madvise]") => {
            "or use huge pages: madvise(MADV_HUGEPAGE), allowed here"
        }
        set if set.contains("[never]") => {
            "or use huge pages, which are off here (transparent_hugepage/enabled)"
        }
        _ => "or use huge pages: madvise(MADV_HUGEPAGE)",
    };
    Some(format!(
        "{rate}, {each:.1} µs each{who}; reuse memory instead of returning it to the kernel; {huge}"
    ))
}

/// System calls: which, how often, of what cost.
fn calls(report: &Report, row: &TimeRow) -> String {
    let task = count(report, "task_clock_ms").unwrap_or(0.0) / 1e3;
    let who = names(row).map_or(String::new(), |names| format!("most by {names}; "));
    let counted: f64 = row.from.iter().filter_map(|entry| entry.calls).sum();
    let wall = count(report, "wall_ms").unwrap_or(0.0) / 1e3;
    let of_counted: f64 =
        row.from.iter().filter(|entry| entry.calls.is_some()).map(|entry| entry.share).sum();
    let often = match counted > 0.0 && task > 0.0 {
        true => format!(
            "{} calls a second of processor time, {:.1} µs each; ",
            format::number(counted / task),
            1e6 * of_counted * wall / counted
        ),
        false => String::new(),
    };
    let switches = count(report, "context_switches").unwrap_or(0.0);
    let hands_over = counted > 0.0 && switches >= HANDS_OVER * counted;
    let name = row.from.first().map_or("", |entry| call_of(&entry.name));
    let advice = match name {
        _ if hands_over => "most hand over to another thread: pass more at once",
        "munmap" | "mmap" | "mmap64" | "brk" | "sbrk" | "madvise" => {
            "reuse memory instead of returning it"
        }
        name if ["futex", "lll_", "pthread"].iter().any(|of| name.contains(of)) => {
            "threads wait for one another: hold locks for less time, or split them"
        }
        _ => "do more in each call: larger buffers, readv and writev, io_uring",
    };
    let more = match counted > 0.0 || report.estimate.is_some() {
        true => "",
        false => " (--estimate counts them)",
    };
    format!("{often}{who}{advice}{more}")
}

/// Kernel time that is not divided.
fn kernel(report: &Report) -> Option<String> {
    let is_sampled = report.sampled.as_ref().is_some_and(|of| of.kernel.is_some());
    (!is_sampled).then(|| {
        "the kernel may not be sampled: `sysctl kernel.perf_event_paranoid=1` divides it".to_owned()
    })
}

/// Time in which nothing of it was ready.
fn waiting(report: &Report) -> String {
    let why = match count(report, "queued_ms") {
        Some(_) => "it sleeps, or waits for input, locks or other processes",
        None => {
            "waiting (asleep, for input, locks or other processes), or others had the processors"
        }
    };
    let switches = count(report, "context_switches").zip(count(report, "wall_ms"));
    let switches = switches.map_or(String::new(), |(number, wall)| {
        format!("{} context switches a second; ", format::number(1e3 * number / wall))
    });
    format!("{switches}{why}: `strace -c -w -f` shows in which calls it waits")
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::documents::report::Source;

    fn of(rows: Vec<TimeRow>) -> Report {
        let mut report = Report::new(Source::NoPmu);
        let counts = [
            ("wall_ms", 2000.0),
            ("task_clock_ms", 1000.0),
            ("page_faults", 500_000.0),
            ("major_faults", 0.0),
            ("context_switches", 10.0),
        ];
        report.software.extend(counts.map(|(name, value)| (name.to_owned(), Some(value))));
        report.wall_time = rows;
        report
    }

    fn row(kind: TimeKind, share: f64, low: f64, high: f64) -> TimeRow {
        TimeRow { kind, share, low, high, ..TimeRow::default() }
    }

    fn entered(name: &str, calls: Option<f64>) -> EntryRow {
        EntryRow { name: name.to_owned(), share: 0.25, calls, ..EntryRow::default() }
    }

    #[test]
    fn the_verdict_is_the_part_that_is_more_than_any_other() {
        let own = row(TimeKind::OwnCode, 0.1, 0.08, 0.12);
        let faults = TimeRow {
            from: vec![entered("touch", None)],
            ..row(TimeKind::PageFaults, 0.4, 0.38, 0.42)
        };
        let taken = row(TimeKind::NoProcessor, 0.5, 0.5, 0.5);
        let said = |rows: &[&TimeRow]| verdict(&of(rows.iter().copied().cloned().collect()));
        // 0.4 of 0.5: what other processes had is none of the program's time.
        assert_eq!(
            said(&[&own, &faults, &taken]).unwrap(),
            "80 % of the wall time, less that of other processes, goes to page faults, most by touch."
        );
        let may_wait = row(TimeKind::Waiting, 0.5, 0.0, 0.9);
        assert_eq!(
            said(&[&own, &faults, &may_wait]).unwrap(),
            "40 % of the wall time goes to page faults, most by touch; it may not run for up to 90 %."
        );
        let waits = row(TimeKind::Waiting, 0.5, 0.5, 0.5);
        assert!(said(&[&own, &faults, &waits]).unwrap().starts_with("For 50 % of the wall time"));
        let calls = row(TimeKind::SystemCalls, 0.4, 0.38, 0.42);
        assert_eq!(said(&[&own, &faults, &calls]), None, "as much");
        assert_eq!(said(&[&row(TimeKind::OwnCode, 0.9, 0.8, 1.0), &faults]), None);
        assert_eq!(said(&[]), None);
    }

    /// By hand: 0.5 of 2 s for 500,000 faults are 2 µs each.
    #[test]
    fn advice_has_rates_and_costs() {
        let report = of(Vec::new());
        let faults = row(TimeKind::PageFaults, 0.5, 0.4, 0.6);
        let said = advice(&report, &faults).unwrap();
        assert!(
            said.starts_with("500 k page faults a second of processor time, 2.0 µs each; reuse")
        );
        let calls = |from| {
            let calls = TimeRow { from, ..row(TimeKind::SystemCalls, 0.5, 0.4, 0.6) };
            advice(&report, &calls).unwrap()
        };
        // 0.25 of 2 s for 250,000 calls.
        assert_eq!(
            calls(vec![entered("__GI___libc_write", Some(250_000.0))]),
            "250 k calls a second of processor time, 2.0 µs each; most by write; do more in each call: larger buffers, \
             readv and writev, io_uring"
        );
        assert!(calls(vec![entered("__munmap", None)]).starts_with("most by munmap; reuse memory"));
        assert!(calls(vec![entered("read", Some(20.0))]).contains("hand over to another thread"));
        assert_eq!(advice(&report, &row(TimeKind::SystemCalls, 0.01, 0.0, 0.02)), None);
    }
}
