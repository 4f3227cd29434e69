//! Prefetch advice as text and CSV.

use super::csv::{number, row};
use super::prefetch_loop::iterations;
use crate::documents::prefetch::{AdviceRow, InFlightRow, Prefetch};
use std::fmt::Write as _;

/// The document as text: `most` loads.
pub fn text(document: &Prefetch, most: usize, ascii: bool) -> String {
    let mut out = String::new();
    let (refused, advised): (Vec<&AdviceRow>, Vec<&AdviceRow>) =
        document.advice.iter().partition(|row| row.refused.is_some());
    let known = advised.iter().filter(|row| row.distance.is_some() && row.site.is_some()).count();
    let _ = writeln!(out, "{}", summary(known, advised.len() - known, refused.len()));
    for one in advised.iter().take(most) {
        out.push('\n');
        load(one, ascii, &mut out);
    }
    if !refused.is_empty() {
        out += "\nno prefetch:\n";
    }
    for one in refused.iter().take(most) {
        let why = one.refused.as_deref().unwrap_or_default();
        let _ = writeln!(out, "  {}: {why}", place(one));
    }
    if advised.len() > most || refused.len() > most {
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
        let _ = writeln!(out, "{}: {} in {}", event.name, what.join(", "), event.source);
    }
    if let Some(host) = &document.in_flight {
        let _ = writeln!(out, "this host: {}", in_flight(host));
    }
    for note in &document.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

/// How many loads a prefetch helps.
fn summary(known: usize, unknown: usize, refused: usize) -> String {
    let loads = |n: usize| if n == 1 { "1 load".to_owned() } else { format!("{n} loads") };
    let mut all = Vec::new();
    if known > 0 || unknown == 0 {
        all.push(format!("a prefetch is advised for {}", loads(known)));
    }
    if unknown > 0 {
        all.push(format!("distance not known for {}", loads(unknown)));
    }
    if refused > 0 {
        all.push(format!("no use for {}", loads(refused)));
    }
    all.join("; ")
}

/// What a core keeps in flight.
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

fn place(one: &AdviceRow) -> String {
    let mut text = one.load.clone();
    if let Some(function) = &one.function {
        let _ = write!(text, " {function}");
    }
    if let Some(file) = one.file.as_ref().and_then(|file| file.rsplit('/').next()) {
        let line = one.line.map_or(String::new(), |line| format!(":{line}"));
        let _ = write!(text, " {file}{line}");
    }
    text
}

fn load(one: &AdviceRow, ascii: bool, out: &mut String) {
    let _ = writeln!(out, "{}", place(one));
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
        let _ = writeln!(out, "    computed at {}", one.slice.join(" "));
    }
    let evidence = &one.evidence;
    if let Some(mean) = evidence.latency_mean {
        let share = 100.0 * evidence.share;
        let what = if evidence.event.is_some() { "samples" } else { "timed executions" };
        let _ = writeln!(
            out,
            "  {share:.1} % of the latency of all loads: mean {mean:.0} cycles of {} {what}",
            evidence.samples
        );
    }
    if let Some(inner) = &one.inner {
        iterations(inner, ascii, out);
    }
    cycles(one, out);
    for (what, why) in unknown(one) {
        let _ = writeln!(out, "  unknown: {what}: {why}");
    }
}

/// What to do.
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

/// Where the distance is from.
fn cycles(one: &AdviceRow, out: &mut String) {
    if let (Some(ic), Some(source)) = (one.ic, &one.ic_source) {
        let range = one.ic_range.filter(|(low, high)| high - low >= 0.1);
        let range = range.map_or(String::new(), |(low, high)| format!(" ({low:.1} to {high:.1})"));
        let mc = one.mc.map_or(String::new(), |mc| format!(", MC {mc:.0}"));
        let taken = one.taken.map_or(String::new(), |n| format!(", {n:.0} as the program runs"));
        let _ = writeln!(out, "  cycles: IC {ic:.1}{range}{mc}{taken}; IC: {source}");
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
         refused,unknown\n",
    );
    for one in &document.advice {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let whole = |value: Option<u64>| value.map(|n| n.to_string()).unwrap_or_default();
        out += &row([
            one.module.clone(),
            one.load.clone(),
            text(&one.function),
            text(&one.class),
            one.stride.map(|n| n.to_string()).unwrap_or_default(),
            one.inner.as_ref().map(|own| own.head.clone()).unwrap_or_default(),
            number(one.ic),
            number(one.mc),
            whole(one.distance),
            text(&one.site),
            text(&one.site_loop),
            number(one.coverage),
            one.evidence.samples.to_string(),
            number(one.evidence.latency_mean),
            text(&one.refused),
            one.unknown.join("; "),
        ]);
        out.push('\n');
    }
    out
}
