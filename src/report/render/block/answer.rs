//! Renders the answer: cycles per iteration, the bound that explains them, and what would lower them; a remedy for
//! a number that does not reproduce; the bounds beside the measurement, as bars on one scale.

use super::rows::{Rows, Style, WIDTH, Weight};
use crate::format::several;
use bench::bound_names::SLOTS;
use bench::explain::{Explained, explained, least};
use bench::{
    Assumed, Bound, Cause, Class, Measurement, Preset, Settings, Status, Throughput, WhatIf,
};

/// Adds the answer.
pub fn answer(rows: &mut Rows, report: &Measurement) {
    match (&report.throughput, report.status) {
        (Some(throughput), Status::Ok) => {
            rows.add("", number(report, throughput), Weight::Strong);
            explanation(rows, report);
        }
        _ if report.interrupted => {
            rows.add("interrupted: ", "nothing was measured", Weight::Alert);
        }
        (throughput, _) => {
            let reason = report.reason.as_deref().unwrap_or("no reason");
            rows.add(format!("{}: ", report.status.word()), reason, Weight::Alert);
            if let (Some(t), Status::Unstable) = (throughput, report.status) {
                rows.plain("  ", range(t));
                explanation(rows, report);
            }
            if let Some(remedy) = remedy(report) {
                rows.plain("  try: ", remedy);
            }
        }
    }
    let place = report.location.as_ref().map(|p| p.words()).filter(|w| !w.is_empty());
    if let Some(place) = place {
        rows.plain("  at ", format!("{place} (counted from 0)"));
    }
    let violated: Vec<&str> = report.violated().into_iter().map(Assumed::state).collect();
    if report.status == Status::Ok && !violated.is_empty() {
        rows.add("  violated assumptions: ", violated.join(", "), Weight::Alert);
    }
    for note in &report.notes {
        rows.plain("note: ", note);
    }
}

fn number(report: &Measurement, t: &Throughput) -> String {
    let mut text =
        format!("{:.3} core cycles per iteration ({:.3} to {:.3})", t.cycles, t.low, t.high);
    let count = report.block.instructions.len();
    text += &format!(", {}", several(count as u64, "instruction"));
    if let Some(ipc) = report.ipc {
        text += &format!(", IPC {ipc:.2}");
    }
    text + &format!(", clock {}", t.clock)
}

/// Range of the cycles where no number is trusted.
fn range(t: &Throughput) -> String {
    let modes = match t.modes.as_slice() {
        [] | [_] => ", without separate modes".to_owned(),
        _ => format!(", in modes: {}", modes(t)),
    };
    format!(
        "between {:.3} and {:.3} core cycles per iteration{modes}, clock {}",
        t.low, t.high, t.clock
    )
}

/// Groups of batches that agree, as `3.000 (75 %), 4.000 (25 %)`.
pub fn modes(throughput: &Throughput) -> String {
    let mode = |m: &bench::Mode| format!("{:.3} ({:.0} %)", m.cycles, m.share * 100.0);
    throughput.modes.iter().map(mode).collect::<Vec<_>>().join(", ")
}

fn explanation(rows: &mut Rows, report: &Measurement) {
    let Some(class) = report.hierarchy.bound() else { return };
    let (meaning, remedy) = meaning(class);
    let found = report.bounds.iter().find(|b| b.name == class.name());
    let path = found.map_or(&[][..], |b| &b.path);
    let chain = found.filter(|_| class == Class::Dependency).and_then(of_chain);
    let remedy = chain.unwrap_or(remedy);
    let text = match (path.is_empty(), class) {
        (false, _) => {
            let range = found.map(latency).unwrap_or_default();
            format!("{meaning}: {} → next iteration{range}", path.join(" → "))
        }
        (true, Class::Undecided) => undecided(report),
        (true, Class::Unexplained) => format!("{meaning}{}", beyond_l1(report)),
        (true, _) => meaning.to_owned(),
    };
    rows.add("  bound by:  ", text, Weight::Strong);
    let measured = largest_gain(report);
    if report.what_if.is_empty() && !remedy.is_empty() {
        rows.plain("  to lower:  ", format!("{remedy}; --what-if measures what helps"));
    } else if let (Some((what, cycles)), Some(t)) = (measured, report.baseline()) {
        let percent = 100.0 * (cycles / t.cycles - 1.0);
        let form = if report.headline == bench::LOOP { " in straight copies" } else { "" };
        let (change, cut) = (&what.change, if what.cuts { CUT } else { "" });
        let text = format!("{change}: {cycles:.3} cycles ({percent:+.0} %), measured{form}{cut}");
        rows.plain("  to lower:  ", text);
    } else if !remedy.is_empty() {
        rows.plain("  to lower:  ", remedy);
    }
}

/// Cycles of a chain whose latencies are known as ranges only.
fn latency(chain: &Bound) -> String {
    match chain.low < chain.high {
        true => format!(" (latency {:.2} to {:.2} cycles)", chain.low, chain.high),
        false => String::new(),
    }
}

/// Open question: between which bounds, or what a single one lacks.
fn undecided(report: &Measurement) -> String {
    let (mut certain, mut perhaps): (Vec<String>, Vec<String>) = Default::default();
    for bound in report.bounds.iter().filter(|b| !b.refuted) {
        let name = label(bound).to_owned();
        match report.throughput.as_ref().map(|time| explained(bound, time)) {
            Some(Explained::All) if !certain.contains(&name) => certain.push(name),
            Some(Explained::PerhapsAll(_)) => perhaps.push(name + &latency(bound)),
            _ => {}
        }
    }
    let (sure, open) = (certain.join(" and "), perhaps.join(" and "));
    let comes = if certain.len() == 1 { "comes" } else { "come" };
    let text = match (certain.as_slice(), perhaps.as_slice()) {
        ([], []) => "no bound certainly reaches the time".to_owned(),
        ([_], []) => format!("only {sure} comes up to the time, and others are not excluded"),
        (_, []) => format!("{sure} {comes} up to the time"),
        ([], _) => format!("{open} may come up to the time"),
        _ => format!("{sure} {comes} up to the time, and {open} may"),
    };
    format!("undecided: {text}{}", beyond_l1(report))
}

/// Time that no bound includes.
fn beyond_l1(report: &Measurement) -> &'static str {
    match report.violated().contains(&Assumed::L1Data) {
        true => "; its data does not fit the L1 data cache, which no bound includes",
        false => "",
    }
}

/// Remedy for a chain of latencies, where it is another than usual.
fn of_chain(chain: &Bound) -> Option<&'static str> {
    if chain.divides {
        return Some(
            "take the division out of this chain, multiply by a reciprocal, or use narrower operands",
        );
    }
    (chain.loads > 0.0).then_some(
        "each load waits for the one before: follow several such chains at once, or lay the data out so \
         that addresses are known earlier",
    )
}

/// Meaning of a verdict, and its usual remedy.
fn meaning(bound: Class) -> (&'static str, &'static str) {
    match bound {
        Class::Dependency => (
            "a loop-carried dependency through registers",
            "shorten this chain; a reduction can be split over several accumulators",
        ),
        Class::StoreForwarding => (
            "store-to-load forwarding",
            "keep the value in a register, or load exactly what was stored",
        ),
        Class::L1Access => (
            "the L1 data cache: banks that several loads need, or lines that stores alternate between",
            "load from addresses that differ in bits 3 to 5 (other banks), and finish the stores to one line before the next",
        ),
        Class::Ports => (
            "execution ports",
            "use fewer instructions of the busiest kind, or others that run on free ports (--ports shows which)",
        ),
        Class::IssueWidth => (
            "the dispatch width",
            "use fewer µops: wider vectors, fused or eliminated instructions",
        ),
        Class::FrontEnd => (
            "the front end",
            "use shorter or fewer instructions, and align the loop to a cache line",
        ),
        Class::Assist(Cause::Transition) => (
            "transitions between AVX and SSE code, an assist each: SSE instructions find upper halves that are not zero",
            "vzeroupper before the SSE code, or VEX encodings throughout (-mavx)",
        ),
        Class::Assist(Cause::X87Stack) => (
            "faults of the x87 register stack, an assist each: it overflows, or an empty register is read",
            "as many pops as loads, and emms after MMX code",
        ),
        Class::Assist(Cause::Subnormals) => (
            "assists for subnormal numbers",
            "set FTZ and DAZ (-ffast-math at link time does), or scale the data",
        ),
        Class::Assist(Cause::SuppressedFaults) => (
            "page faults of masked accesses, suppressed by an assist each",
            "map the pages that the masks leave out, or jump around accesses with empty masks",
        ),
        Class::Undecided => ("undecided", ""),
        Class::Unexplained => ("unexplained: no known bound comes up to the time", ""),
    }
}

/// Meaning of the removal of an instruction that carries a dependency.
pub const CUT: &str =
    "; the dependency that it carries is cut with it, so this is not what the instruction costs";

/// The change that was measured to lower the time most, beyond the errors; of removals, one that leaves dependencies as
/// they are, if any.
fn largest_gain(report: &Measurement) -> Option<(&WhatIf, f64)> {
    let gaining = report.what_if.iter().filter(|what| gains(report, what));
    let best = gaining.filter_map(|what| Some((what, what.cycles?)));
    best.min_by(|a, b| a.0.cuts.cmp(&b.0.cuts).then(a.1.total_cmp(&b.1)))
}

/// Whether a change was measured to lower the time, beyond the errors.
pub fn gains(report: &Measurement, what: &WhatIf) -> bool {
    let low = report.baseline().map(|baseline| baseline.low);
    what.high.zip(low).is_some_and(|(high, low)| high < low)
}

/// The wait for an uncontended core that is suggested, in milliseconds.
const LONG_MS: u64 = 30_000;

/// Command to try where measuring again may help; nothing where the block itself is the reason.
pub fn remedy(report: &Measurement) -> Option<String> {
    let may_help = report.status == Status::Unstable || report.was_disturbed();
    may_help.then(|| again(report.settings.as_ref()))
}

/// How to measure again: with more of what these settings leave.
pub fn again(settings: Option<&Settings>) -> String {
    let budget = settings.map(|settings| settings.budget_ms).filter(|ms| *ms < LONG_MS);
    let wait = budget.map(|ms| {
        format!(
            "--budget {LONG_MS} waits up to half a minute for an uncontended core (now {ms} ms)"
        )
    });
    let samples = match settings.and_then(|settings| settings.preset) {
        Some(Preset::Thorough) => None,
        Some(Preset::Quick) => Some("without --quick more rounds are taken".to_owned()),
        _ => Some("--thorough takes more rounds".to_owned()),
    };
    let busy = "`tdtool doctor` shows what keeps the machine busy".to_owned();
    wait.into_iter().chain(samples).chain([busy]).collect::<Vec<_>>().join("; ")
}

/// Columns of the longest bar, and on a narrow page.
const BAR: usize = 24;
const NARROW: usize = 8;

/// Adds one bar for the measurement and one for each bound, the largest first; verbose, how each
/// bound was found. Bounds overlap: they are compared with the time, never added up.
pub fn bars(rows: &mut Rows, report: &Measurement, style: &Style) {
    if report.bounds.is_empty() {
        return;
    }
    let time = report.throughput.as_ref().filter(|_| report.status == Status::Ok);
    let valid = report.bounds.iter().filter(|b| !b.refuted).map(least);
    // An unstable time has no bar, but the others are drawn beside it.
    let longest = report.throughput.as_ref().map(|t| time.map_or(t.high, |t| t.cycles));
    let scale = valid.chain(longest).fold(0.0, f64::max);
    // The text of a bound has half of the page.
    let columns = match style.width {
        _ if style.narrow => NARROW,
        WIDTH.. => BAR,
        width => (width / 2).saturating_sub(31).clamp(NARROW, BAR),
    };
    // The open range is shaded where that shows.
    let shades = |b: &Bound| (b.high.min(scale) - least(b)) / scale * columns as f64 >= 1.0;
    let is_vague = |b: &Bound| !b.refuted && b.is_sum() && shades(b);
    rows.heading(match report.bounds.iter().any(is_vague) {
        true => "cycles per iteration: measured, and lower bounds (shaded: the rest of a range)",
        false => "cycles per iteration: measured, and lower bounds",
    });
    let bar = |[low, high]: [f64; 2]| drawn([low / scale, high / scale], columns, style.ascii);
    if let Some(t) = time {
        let bar = bar([t.cycles; 2]);
        rows.plain(format!("  {:<17}{:>8.3}  {bar}", "measured", t.cycles), "");
    }
    let mut bounds: Vec<&Bound> = report.bounds.iter().collect();
    bounds.sort_by(|a, b| a.refuted.cmp(&b.refuted).then(least(b).total_cmp(&least(a))));
    for bound in bounds {
        let is_verdict = report.hierarchy.bound().is_some_and(|v| is_named(bound, v, report));
        let (mark, weight) = match (bound.refuted, is_verdict) {
            (true, _) => (String::new(), Weight::Faint),
            (_, true) => (mark(bound, report.throughput.as_ref()), Weight::Strong),
            _ => (String::new(), Weight::Plain),
        };
        let text = format!("{mark}{}", source(bound, time, style.verbose));
        let cycles = least(bound);
        let bar = bar(match (bound.refuted, is_vague(bound)) {
            (true, _) => [0.0; 2],
            (_, true) => [cycles, bound.high],
            _ => [cycles; 2],
        });
        rows.add(format!("  {:<17}{cycles:>8.3}  {bar}  ", label(bound)), text, weight);
    }
}

/// A bound's name as printed: slots are the dispatch width as measured, with other instructions.
fn label(bound: &Bound) -> &'static str {
    match bound.name {
        SLOTS => "width (measured)",
        bench::bound_names::WIDTH => "width (computed)",
        name => name,
    }
}

/// Whether `verdict` is about this bound; of the width, the one measured.
fn is_named(bound: &Bound, verdict: Class, report: &Measurement) -> bool {
    let is_measured = || report.bounds.iter().any(|b| b.name == SLOTS && !b.refuted);
    match verdict {
        Class::IssueWidth if is_measured() => bound.name == SLOTS,
        _ => bound.name == verdict.name(),
    }
}

/// Cycles that the bound of the verdict explains: its range may reach the time in part only.
fn mark(bound: &Bound, time: Option<&Throughput>) -> String {
    match time.map(|time| explained(bound, time)) {
        None => "<- bounds the time; ".to_owned(),
        Some(Explained::All) => "<- explains the time; ".to_owned(),
        Some(Explained::PerhapsAll(cycles)) => {
            format!("<- bounds the time; explains {cycles:.3} cycles of it, perhaps all; ")
        }
        Some(Explained::Part(cycles)) => {
            format!("<- bounds the time; explains {cycles:.3} cycles of it; ")
        }
    }
}

/// How the bound was found: a word and its range, or everything; and that it is above the time.
fn source(bound: &Bound, time: Option<&Throughput>, verbose: bool) -> String {
    let range = match bound.low < bound.high {
        false => String::new(),
        true => format!(" ({:.3} to {:.3})", bound.low, bound.high),
    };
    let from = if bound.assumed { " from assumed latencies" } else { "" };
    let refuted = match () {
        () if bound.refuted => "refuted: above the measurement; ",
        // Less than its error, 5 % of a measured bound and 12 % of a computed one.
        () if time.is_some_and(|t| bound.low > t.high) => {
            "above the measurement, within its error; "
        }
        () => "",
    };
    let how = match verbose {
        true => format!("{range}; {}", bound.how).trim_start_matches("; ").trim_start().to_owned(),
        false => format!("{}{from}{range}", bound.found.word()),
    };
    format!("{refuted}{how}")
}

/// A bar up to the first share of the columns, shaded up to the second, padded.
fn drawn(shares: [f64; 2], columns: usize, ascii: bool) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    // A scale of zero gives no number.
    let eighths = shares.map(|share| match share.is_nan() {
        true => 0,
        false => (share.clamp(0.0, 1.0) * (8 * columns) as f64).round() as usize,
    });
    let (mut text, shade) = match ascii {
        true => ("#".repeat((eighths[0] + 4) / 8), "-"),
        false => ("█".repeat(eighths[0] / 8) + EIGHTHS[eighths[0] % 8], "░"),
    };
    let end = (eighths[1] + 4) / 8;
    text += &shade.repeat(end.saturating_sub(text.chars().count()));
    format!("{text:<columns$}")
}

#[cfg(test)]
mod tests;
