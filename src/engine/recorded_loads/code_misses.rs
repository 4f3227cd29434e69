//! Misses of the instruction cache with branch stacks → missed lines and prefetch sites.

use super::code::Code;
use branches::stacks::{Before, CodeMisses, MissedLine, windows};
use profile::address_space::{AddressSpaces, ModuleAddress};
use profile::files::SearchPaths;
use profile::hot::origin;
use profile::recording::Stream;
use profile::symbols::Symbols;
use report::documents::loads::{CodeMissRow, SiteRow};
use tma::{Address, Result};

/// Sites listed of a line.
const MOST_SITES: usize = 3;
/// A site comes before at least this share of a line's misses.
const LEAST_COVERAGE: f64 = 0.1;

/// The missed lines of a recording whose events have the numbers from `first` on.
///
/// # Errors
/// It cannot be read.
pub(super) fn rows(
    stream: &Stream,
    first: usize,
    search: &SearchPaths,
) -> Result<Vec<CodeMissRow>> {
    let events = &stream.about.events;
    let is_wanted: Vec<bool> =
        events.iter().map(|event| CodeMisses::samples_misses(&event.name)).collect();
    if !is_wanted.contains(&true) {
        return Ok(Vec::new());
    }
    let mut spaces = AddressSpaces::of(&stream.about, search.clone());
    let mut all = vec![CodeMisses::default(); events.len()];
    windows(stream, &mut spaces, &mut |event, window| {
        if is_wanted.get(event) == Some(&true) && window.entries > 0 {
            all[event].add(window);
        }
    })?;
    let symbols = Symbols::new(search.clone()).with_origin(origin(&stream.about));
    let mut code = Code::new(symbols, spaces.modules.all);
    let mut rows = Vec::new();
    for (number, found) in all.iter().enumerate() {
        let mut lines: Vec<_> = found.lines.iter().collect();
        lines.sort_by(|(a, x), (b, y)| y.samples.cmp(&x.samples).then(a.cmp(b)));
        rows.extend(lines.into_iter().map(|(line, missed)| CodeMissRow {
            event: first + number,
            name: events[number].name.clone(),
            module: code.path(line.module),
            address: Address(line.address),
            function: code.function(*line).map(|function| function.short),
            samples: missed.samples,
            share: missed.samples as f64 / found.samples.max(1) as f64,
            reached: missed.reached,
            sites: sites(missed, found, &mut code),
        }));
    }
    Ok(rows)
}

fn sites(missed: &MissedLine, all: &CodeMisses, code: &mut Code) -> Vec<SiteRow> {
    let coverage = |before: &Before| before.misses as f64 / missed.samples.max(1) as f64;
    let mut sites: Vec<(&ModuleAddress, &Before)> =
        missed.before.iter().filter(|(_, before)| coverage(before) >= LEAST_COVERAGE).collect();
    // The nearest of those before as many misses: what comes sooner stays in the cache for sure.
    sites.sort_by_key(|(place, before)| (std::cmp::Reverse(before.misses), before.cycles, **place));
    sites.truncate(MOST_SITES);
    let row = |(place, before): (&ModuleAddress, &Before)| SiteRow {
        module: code.path(place.module),
        address: Address(place.address),
        function: code.function(*place).map(|function| function.short),
        coverage: coverage(before),
        distance: before.cycles as f64 / before.misses.max(1) as f64,
        fan_out: all.fan_out(*place),
    };
    sites.into_iter().map(row).collect()
}
