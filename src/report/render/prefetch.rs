//! Prefetch advice as text and CSV.

use super::csv::{number, row};
use super::prefetch_loop::iterations;
use super::prefetch_summary;
use super::width::{Page, Subject, Worth};
use crate::documents::prefetch::{AdviceRow, InFlightRow, Prefetch};
use crate::format::joined;
use std::fmt::Write as _;

/// From so many samples on the interval of what they say is within a fifth of it.
const SURE: u64 = 100;

/// The document as text: `most` loads.
pub fn text(document: &Prefetch, most: usize, ascii: bool, page: Page) -> String {
    let mut out = prefetch_summary::summary(&document.advice);
    let advised: Vec<&AdviceRow> =
        document.advice.iter().filter(|row| row.refused.is_none()).collect();
    let several = document.events.iter().filter(|event| event.loads > 0).count() > 1;
    for one in advised.iter().take(most) {
        out.push('\n');
        load(one, several, ascii, page, &mut out);
    }
    let mut is_cut = advised.len() > most;
    for (title, undecided) in [("not decided", true), ("no prefetch", false)] {
        let own = document.advice.iter();
        let own = own.filter(|row| row.refused.is_some() && row.undecided == undecided);
        for (number, one) in own.enumerate() {
            if number >= most {
                is_cut = true;
                break;
            }
            if number == 0 {
                let _ = writeln!(out, "\n{title}:");
            }
            let after = {
                let why = one.refused.as_deref().unwrap_or_default();
                format!("{}{}: {why}", line(one), event(one, several))
            };
            let cells = [(Worth::All, format!("  {:>6}", share(one)))];
            let name = one.function.as_deref().unwrap_or_default();
            page.row(
                &mut out,
                &cells,
                Subject { place: &one.load.to_string(), name, after: &after },
            );
        }
    }
    if is_cut {
        let _ = writeln!(out, "  (-n shows more, --format json all)");
    }
    out.push('\n');
    for event in &document.events {
        let mut what = Vec::new();
        if event.loads > 0 {
            what.push(format!("{} loads", event.loads));
        }
        if event.stacks > 0 {
            what.push(format!("{} branch stacks", event.stacks));
        }
        let number = if several { format!("event {}: ", event.event) } else { String::new() };
        let _ = writeln!(out, "{number}{}: {} in {}", event.name, what.join(", "), event.source);
    }
    if let Some(host) = &document.in_flight {
        let _ = writeln!(out, "this host: {}", in_flight(host));
    }
    for note in &document.notes {
        let _ = writeln!(out, "note: {note}");
    }
    page.fitted(out)
}

/// Its share of the latency of all loads.
fn share(one: &AdviceRow) -> String {
    match one.evidence.latency_mean {
        Some(_) => format!("{:.1} %", 100.0 * one.evidence.share),
        None => "?".to_owned(),
    }
}

/// Misses that a core keeps in flight.
fn in_flight(host: &InFlightRow) -> String {
    let (fewest, most) = host.range;
    let (fast, slow) = host.ns_range;
    format!(
        "{:.0} ({fewest:.0} to {most:.0}) misses in flight, one each {:.1} ns ({fast:.1} to {slow:.1}; on huge pages {:.1}), by \
         walks over {} MiB, {}",
        host.misses,
        host.ns,
        host.fastest_ns,
        host.bytes >> 20,
        host.source
    )
}

/// The source line.
fn line(one: &AdviceRow) -> String {
    let mut text = String::new();
    if let Some(file) = one.file.as_ref().and_then(|file| file.rsplit('/').next()) {
        let line = one.line.map_or(String::new(), |line| format!(":{line}"));
        let _ = write!(text, " {file}{line}");
    }
    text
}

/// The event of its samples, if there are several with loads.
fn event(one: &AdviceRow, several: bool) -> String {
    let event = one.evidence.event.filter(|_| several);
    event.map_or(String::new(), |number| format!(" (event {number})"))
}

fn load(one: &AdviceRow, several: bool, ascii: bool, page: Page, out: &mut String) {
    let event = event(one, several);
    let after = format!("{}, {} of the latency of all loads{event}", line(one), share(one));
    let name = one.function.as_deref().unwrap_or_default();
    let name = page.cut(name, page.width().unwrap_or(0) / 2);
    let gap = if name.is_empty() { "" } else { " " };
    let _ = writeln!(out, "{}{gap}{name}{after}", one.load);
    let _ = writeln!(out, "  {}", answer(one));
    let pattern = one.pattern.as_deref().unwrap_or("not known");
    let wraps = one.wraps.map_or(String::new(), |bytes| format!(", wraps at {bytes} bytes"));
    let _ = writeln!(out, "  address: {pattern}{wraps}");
    if let Some(outer) = &one.outer_pattern {
        let _ = writeln!(out, "    in the outer loop: {outer}");
    }
    if let Some(share) = one.paths_agree.filter(|share| *share < 1.0) {
        let _ = writeln!(out, "    on {:.0} % of the paths through the loop", 100.0 * share);
    }
    if !one.slice.is_empty() {
        let _ = writeln!(out, "    computed at {}", joined(&one.slice));
    }
    if let Some(copied) = one.copied {
        let _ = writeln!(
            out,
            "    ahead only by a second copy of these {copied} instructions, with a state of its own, that runs so many \
             iterations ahead"
        );
    }
    if let Some(memory) = &one.memory {
        let _ = writeln!(out, "  memory: {memory}");
    }
    let evidence = &one.evidence;
    if let Some(mean) = evidence.latency_mean {
        let what = if evidence.event.is_some() { "samples" } else { "timed executions" };
        let _ = writeln!(out, "  latency: mean {mean:.0} cycles of {} {what}", evidence.samples);
    }
    if let Some(inner) = &one.inner {
        iterations(inner, ascii, page, out);
    }
    cycles(one, out);
    for (what, why) in unknown(one) {
        let _ = writeln!(out, "  unknown: {what}: {why}");
    }
}

/// Advice in a sentence.
fn answer(one: &AdviceRow) -> String {
    let mut text = match (&one.site, one.distance) {
        (Some(site), Some(distance)) => {
            let plural = if distance == 1 { "" } else { "s" };
            let range = one.distance_range;
            let range = range.map_or(String::new(), |(near, far)| format!(" ({near} to {far})"));
            format!("prefetch {distance}{range} iteration{plural} ahead in the {site} loop")
        }
        (Some(site), None) => format!("prefetch in the {site} loop, distance not known"),
        (None, Some(distance)) => format!("prefetch {distance} iterations ahead, loop not known"),
        (None, None) => "a prefetch may help, distance and loop are not known".to_owned(),
    };
    if let Some(coverage) = one.coverage {
        let _ = write!(text, ", covers ≥ {:.0} %", 100.0 * coverage);
    }
    if let Some(speedup) = one.speedup_at_most {
        let _ = write!(text, "; at most {speedup:.1} × as fast");
    }
    text
}

/// Cycles of an iteration in the program; of few samples with their range.
fn taken(one: &AdviceRow) -> Option<String> {
    let range = match (one.taken_range, one.taken_samples) {
        (Some((low, high)), Some(samples)) if samples < SURE => {
            format!(" ({low:.0} to {high:.0} by {samples} samples)")
        }
        _ => String::new(),
    };
    Some(format!("{:.0}{range} as the program runs", one.taken?))
}

/// Source of the distance.
fn cycles(one: &AdviceRow, out: &mut String) {
    if let (Some(ic), Some(source)) = (one.ic, &one.ic_source) {
        let range = one.ic_range.filter(|(low, high)| high - low >= 0.1);
        let range = range.map_or(String::new(), |(low, high)| format!(" ({low:.1} to {high:.1})"));
        let mc = one.mc.map_or(String::new(), |mc| format!(", MC {mc:.0}"));
        let taken = taken(one).map_or(String::new(), |text| format!(", {text}"));
        let _ = writeln!(out, "  cycles: IC {ic:.1}{range}{mc}{taken}; IC: {source}");
    }
    if let (None, Some(taken)) = (one.ic, taken(one)) {
        let _ = writeln!(out, "  cycles: {taken}");
    }
    if let Some(source) = &one.mc_source {
        let _ = writeln!(out, "    MC: {source}");
    }
    if let (Some(cycles), Some(source)) = (one.iteration, &one.iteration_source) {
        let _ = writeln!(out, "    with prefetches: {cycles:.1} an iteration: {source}");
    }
}

/// Reasons, each with everything that it is of.
fn unknown(one: &AdviceRow) -> Vec<(String, &str)> {
    let mut all: Vec<(String, &str)> = Vec::new();
    for (what, why) in one.unknown.iter().filter_map(|text| text.split_once(": ")) {
        // Which loop follows from the distance.
        if what == "site" && one.distance.is_none() {
            continue;
        }
        match all.iter_mut().find(|known| known.1 == why) {
            Some(known) => known.0 = format!("{}, {what}", known.0),
            None => all.push((what.to_owned(), why)),
        }
    }
    all
}

/// The rows as CSV.
pub fn csv(document: &Prefetch) -> String {
    let mut out = String::from(
        "module,load,function,class,stride,loop,ic,mc,distance,site,site_loop,coverage,samples,latency_mean,\
         refused,unknown,share,undecided\n",
    );
    for one in &document.advice {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let whole = |value: Option<u64>| value.map(|n| n.to_string()).unwrap_or_default();
        out += &row([
            one.module.clone(),
            one.load.to_string(),
            text(&one.function),
            text(&one.class.map(|class| class.to_string())),
            one.stride.map(|n| n.to_string()).unwrap_or_default(),
            one.inner.as_ref().map(|own| own.head.to_string()).unwrap_or_default(),
            number(one.ic),
            number(one.mc),
            whole(one.distance),
            text(&one.site.map(|site| site.to_string())),
            text(&one.site_loop.map(|head| head.to_string())),
            number(one.coverage),
            one.evidence.samples.to_string(),
            number(one.evidence.latency_mean),
            text(&one.refused),
            one.unknown.join("; "),
            number(one.evidence.latency_mean.map(|_| one.evidence.share)),
            one.undecided.to_string(),
        ]);
        out.push('\n');
    }
    out
}
