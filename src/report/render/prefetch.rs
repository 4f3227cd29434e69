//! Prefetch advice as text and CSV: a summary, then each load with the iterations of its loop: trips, a drawn
//! histogram, peaks.

use super::csv::{self, number, text as cell};
use super::prefetch_applied;
use super::width::{Page, Subject, Worth};
use crate::documents::prefetch::{AdviceRow, InFlightRow, LoopRow, Prefetch};
use crate::format::{joined, several, source};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// From so many samples on the interval of what they say is within a fifth of it.
const SURE: u64 = 100;
/// Loads with less of the latency of all matter little.
const LITTLE: f64 = 0.05;

/// The document as text: `most` loads.
pub fn text(document: &Prefetch, most: usize, ascii: bool, page: Page) -> String {
    let mut out = summary(&document.advice);
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
            let why = one.refused.as_deref().unwrap_or_default();
            let after = format!("{}{}: {why}", line(one), event(one, several));
            let cells = [(Worth::All, format!("  {:>6}", share(one)))];
            let name = one.function.as_deref().unwrap_or_default();
            let subject = Subject { place: &one.load.to_string(), name, after: &after };
            page.row(&mut out, &cells, subject);
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
    out += &prefetch_applied::text(&document.applied);
    page.fitted(out)
}

fn summary(all: &[AdviceRow]) -> String {
    let is_known = |row: &AdviceRow| row.distance.is_some() && row.site.is_some();
    let kind = |row: &AdviceRow| match (row.refused.is_some(), row.undecided) {
        (false, _) => usize::from(!is_known(row)),
        (true, true) => 2,
        (true, false) => 3,
    };
    let of = |number: usize| -> Vec<&AdviceRow> {
        all.iter().filter(|row| kind(row) == number).collect()
    };
    let known = of(0);
    let mut out = format!("a prefetch is advised for {}", loads(&known));
    for (number, what) in [(1, "distance not known for"), (2, "not decided for"), (3, "no use for")]
    {
        let own = of(number);
        if !own.is_empty() {
            let _ = write!(out, "; {what} {}", loads(&own));
        }
    }
    out.push('\n');
    if !known.is_empty() && share_of(&known) < LITTLE {
        let _ = writeln!(
            out,
            "little is to be gained by the advice: all of these loads together have {:.1} % of the latency",
            100.0 * share_of(&known)
        );
    }
    out
}

/// How many, each once, and their share of the latency. A load has a row for each event that samples it.
fn loads(own: &[&AdviceRow]) -> String {
    let different: BTreeSet<_> = own.iter().map(|row| (&row.module, row.load)).collect();
    let number = several(different.len() as u64, "load");
    match own.iter().any(|row| row.evidence.latency_mean.is_some()) {
        true => format!("{number} ({:.1} % of the latency)", 100.0 * share_of(own)),
        false => number,
    }
}

/// Share of the latency; of several events that in which it is largest.
fn share_of(own: &[&AdviceRow]) -> f64 {
    let mut events: Vec<Option<usize>> = own.iter().map(|row| row.evidence.event).collect();
    events.sort_unstable();
    events.dedup();
    let of = |event: &Option<usize>| -> f64 {
        let rows = own.iter().filter(|row| row.evidence.event == *event);
        rows.map(|row| row.evidence.share).sum()
    };
    events.iter().map(of).fold(0.0, f64::max)
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

fn line(one: &AdviceRow) -> String {
    source(one.file.as_ref(), one.line).map_or(String::new(), |at| format!(" {at}"))
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

/// Columns of the drawn histogram, also on a narrow page.
const COLUMNS: usize = 48;
const NARROW: usize = 16;
/// Share of the iterations that are drawn; the slowest rest would squeeze the others together.
const DRAWN: f64 = 0.995;
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII: [char; 9] = [' ', '.', '.', ':', ':', '+', '+', '#', '#'];

/// Adds the lines of a loop.
fn iterations(one: &LoopRow, ascii: bool, page: Page, out: &mut String) {
    let _ = write!(out, "  loop {}: {}", one.head, trips(one));
    if let Some(run) = one.runs_on {
        let _ = write!(out, ", but the addresses go on by a stride for {run:.0} executions");
    }
    if one.iterations == 0 {
        out.push('\n');
        return;
    }
    let wrong = match one.mispredicted {
        0 => String::new(),
        n => format!(" ({n} more with a misprediction)"),
    };
    let _ = writeln!(out, ", {} timed iterations{wrong}", one.iterations);
    let wide = if page.is_below(80) { NARROW } else { COLUMNS };
    let Some((drawing, low, high)) = draw(one, ascii, wide) else { return };
    let modes: Vec<String> = one
        .modes
        .iter()
        .map(|mode| format!("{} ({:.0} %)", mode.cycles, 100.0 * mode.share))
        .collect();
    let modes = if modes.is_empty() { "none".to_owned() } else { modes.join(", ") };
    let _ = writeln!(out, "    {low} {drawing} {high} cycles, peaks: {modes}");
}

fn trips(one: &LoopRow) -> String {
    match (one.trips, one.trips_mean, one.trips_at_least) {
        (Some(trips), _, _) => format!("{trips} trips each time"),
        (_, Some(mean), _) if mean < 100.0 => format!("{mean:.1} trips"),
        (_, Some(mean), _) => format!("{mean:.0} trips"),
        (_, _, Some(least)) => format!("≥ {:.0} trips", least.floor()),
        _ => "trips unknown".to_owned(),
    }
}

/// Iterations by cycles, and the ends of the axis.
fn draw(one: &LoopRow, ascii: bool, wide: usize) -> Option<(String, u64, u64)> {
    let low = one.histogram.first()?.0;
    let mut below = 0;
    let end = one.histogram.iter().find(|(_, n)| {
        below += n;
        below as f64 >= DRAWN * one.iterations as f64
    });
    let highest = one.modes.last().map_or(0, |mode| mode.cycles);
    let high = end.map_or(low, |(cycles, _)| *cycles).max(highest).max(low + 1);
    let mut columns = vec![0u64; wide];
    for (cycles, n) in one.histogram.iter().filter(|(cycles, _)| *cycles <= high) {
        let column = (cycles - low) as usize * (wide - 1) / (high - low) as usize;
        columns[column.min(wide - 1)] += n;
    }
    let most = columns.iter().copied().max().unwrap_or(1).max(1);
    let signs = if ascii { ASCII } else { BLOCKS };
    let sign = |n: &u64| match n {
        0 => signs[0],
        // Rare ones would be too low to be seen: heights are by the square root.
        n => signs[((*n as f64 / most as f64).sqrt() * 8.0).ceil().clamp(1.0, 8.0) as usize],
    };
    Some((format!("|{}|", columns.iter().map(sign).collect::<String>()), low, high))
}

/// The rows as CSV.
pub fn csv(document: &Prefetch) -> String {
    let mut out = String::from(
        "module,load,function,class,stride,loop,ic,mc,distance,site,site_loop,coverage,samples,latency_mean,\
         refused,unknown,share,undecided\n",
    );
    for one in &document.advice {
        out += &csv::line([
            one.module.clone(),
            one.load.to_string(),
            cell(one.function.as_ref()),
            cell(one.class),
            cell(one.stride),
            cell(one.inner.as_ref().map(|own| own.head)),
            number(one.ic),
            number(one.mc),
            cell(one.distance),
            cell(one.site),
            cell(one.site_loop),
            number(one.coverage),
            one.evidence.samples.to_string(),
            number(one.evidence.latency_mean),
            cell(one.refused.as_ref()),
            one.unknown.join("; "),
            number(one.evidence.latency_mean.map(|_| one.evidence.share)),
            one.undecided.to_string(),
        ]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::prefetch::Evidence;

    fn row(share: f64, refused: Option<bool>) -> AdviceRow {
        AdviceRow {
            distance: refused.is_none().then_some(8),
            site: Some(loads::prefetch::Site::Inner),
            refused: refused.map(|_| String::new()),
            undecided: refused == Some(true),
            evidence: Evidence { share, latency_mean: Some(9.0), ..Evidence::default() },
            ..AdviceRow::default()
        }
    }

    #[test]
    fn shares_say_whether_the_advice_matters() {
        let all = [row(0.007, None), row(0.893, Some(false)), row(0.1, Some(true))];
        let text = summary(&all);
        let first = "a prefetch is advised for 1 load (0.7 % of the latency); not decided for 1 load (10.0 % of the \
                     latency); no use for 1 load (89.3 % of the latency)\n";
        assert!(text.starts_with(first), "{text}");
        assert!(text.contains("little is to be gained"));
        // Two events sample it.
        let twice = [row(0.5, None), row(0.4, None)];
        assert_eq!(summary(&twice), "a prefetch is advised for 1 load (90.0 % of the latency)\n");
        assert!(!summary(&[row(0.5, None)]).contains("little"));
        assert_eq!(summary(&[]), "a prefetch is advised for 0 loads\n");
    }
}
