//! The answer: cycles per iteration, the bound that explains them, and what would lower them.

use super::remedy::remedy;
use super::rows::{Rows, Weight};
use bench::explain::{Explained, explained};
use bench::{Assumed, Bound, Measurement, Status, Throughput, WhatIf};
use bench::{Cause, Class};

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
    let violated: Vec<&str> = report.violated().into_iter().map(Assumed::word).collect();
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
    let plural = if count == 1 { "" } else { "s" };
    text += &format!(", {count} instruction{plural}");
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
    let Some(class) = report.hierarchy.bound else { return };
    let (meaning, remedy) = meaning(class);
    let found = report.bounds.iter().find(|b| b.name == class.name());
    let path = found.map_or(&[][..], |b| &b.path);
    let remedy = if class == Class::Dependency { of_chain(path).unwrap_or(remedy) } else { remedy };
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
        true => format!(" ({:.3} to {:.3} cycles)", chain.low, chain.high),
        false => String::new(),
    }
}

/// Open question: between which bounds, or what a single one lacks.
fn undecided(report: &Measurement) -> String {
    let (mut certain, mut perhaps): (Vec<String>, Vec<String>) = Default::default();
    for bound in report.bounds.iter().filter(|b| !b.refuted) {
        let name = bound.name.to_owned();
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

/// Remedy for a chain with these instructions, where it is another than usual.
fn of_chain(path: &[String]) -> Option<&'static str> {
    let name = |text: &String| text.split(' ').next().unwrap_or_default().to_owned();
    let divides = |text: &String| name(text).contains("div") || name(text).contains("sqrt");
    let loads = |text: &String| name(text).starts_with("mov") && text.contains(",[");
    if path.iter().any(divides) {
        return Some(
            "take the division out of this chain, multiply by a reciprocal, or use narrower operands",
        );
    }
    path.iter().any(loads).then_some(
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
            "place what is loaded together in different 8-byte columns of its lines, and store line after line",
        ),
        Class::Ports => (
            "execution ports",
            "use fewer instructions of the busiest kind, or others that run on free ports",
        ),
        Class::IssueWidth => (
            "the pipeline's width",
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
