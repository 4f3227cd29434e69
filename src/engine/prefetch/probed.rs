//! Exact counts, recorded addresses and fenced latencies of a command's loads (`tdtool.count/1`) → prefetch advice, without
//! a PMU.

use super::candidates::{Candidate, NoCycles, candidate};
use super::in_flight::HostMisses;
use super::pace::{self, bounds, most_frequent};
use super::rows::{Host, Measure, add_access, add_advice, add_trips, identified, sort};
use super::served::served;
use crate::recorded_loads::executed::key;
use loads::latency::Level;
use loads::prefetch::{Measured, Probed, Request, Timed, TripCount, Trips, advise};
use profile::code::Code;
use profile::files::SearchPaths;
use profile::module::{Module, ModuleKind};
use profile::symbols::Symbols;
use report::documents::count::{Count, LoadRow, LoopRow as CountedLoop};
use report::documents::prefetch::{AdviceRow, Evidence, Grounds, LoopRow, Prefetch, SCHEMA};
use std::collections::HashMap;
use std::path::Path;
use tma::{Error, Result};

/// Most loads that are analysed.
const MOST: usize = 200;
/// Functions of this share of the samples are named if they are not analysed.
const NAMED: f64 = 0.05;

/// Advises on prefetches for the loads that `tdtool count --hot --loads` has analysed. Latencies are turned into
/// cycles by the clock of `host`; loops are measured as blocks in isolation.
///
/// # Errors
/// No load was analysed.
pub fn prefetch_by_probes(
    counts: &Count,
    search: &SearchPaths,
    host: &Host,
    measure: Measure<'_>,
) -> Result<Prefetch> {
    if counts.loads.is_empty() {
        return Err(Error::failed("nothing to advise on")
            .because("no load is executed often in the functions that hold most samples")
            .hint("give a command that runs for a second or more"));
    }
    let mut document = Prefetch {
        schema: SCHEMA.to_owned(),
        sources: vec![counts.command.join(" ")],
        evidence: Some(Grounds::Probes),
        in_flight: host.in_flight.as_ref().ok().and_then(HostMisses::row),
        notes: notes(counts, host),
        ..Prefetch::default()
    };
    let modules = modules(counts);
    let ids: HashMap<String, Option<Vec<u8>>> = modules.iter().map(key).collect();
    let mut code = vec![Code::new(Symbols::new(search.clone()), modules)];
    let weight = |row: &LoadRow| {
        row.executions.unwrap_or(0) as f64 * row.latency.as_ref().map_or(0.0, |one| one.mean)
    };
    let all: f64 = counts.loads.iter().map(weight).sum();
    let mut rows: Vec<&LoadRow> = counts.loads.iter().collect();
    rows.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    rows.truncate(MOST);
    let mut known = HashMap::new();
    for row in rows {
        let key = (row.module.clone(), ids.get(&row.module).cloned().flatten());
        let one = candidate((key, row.address.0), &mut code);
        let mut cycles = |one: &Candidate| -> std::result::Result<Measured, NoCycles> {
            let body = most_frequent(&mut code, counts, one)?;
            let place = (row.module.clone(), body.start);
            let found = known.entry(place).or_insert_with(|| measure(&body.code)).clone()?;
            let source = body.source + found.how();
            Ok(Measured { cycles: found.cycles, range: found.range, source })
        };
        let mut own = advised(counts, row, &one, host, &mut cycles);
        own.evidence.share = weight(row) / all.max(f64::MIN_POSITIVE);
        document.advice.push(own);
    }
    sort(&mut document.advice);
    Ok(document)
}

/// Advice on a load; `measure` measures an iteration of its loop.
fn advised(
    counts: &Count,
    row: &LoadRow,
    one: &Candidate,
    host: &Host,
    measure: &mut dyn FnMut(&Candidate) -> std::result::Result<Measured, NoCycles>,
) -> AdviceRow {
    let cycles_per_ns = host.cycles_per_ns;
    let probed = probed(counts, row, cycles_per_ns);
    let bounds = bounds(counts, one, &probed, host);
    let mut request = Request {
        access: one.access.as_ref(),
        loops: loops(counts, &row.module, one),
        pace: Some(bounds.pace.clone()),
        probed: Some(probed),
        ..Request::default()
    };
    let mut advice = advise(&request);
    let mut unknown = None;
    if advice.refused.is_none() {
        match measure(one) {
            Ok(found) => request.measured = Some(found),
            Err(why) => unknown = Some(format!("measured block: {why}")),
        }
        advice = advise(&request);
    }
    let mut own = AdviceRow {
        evidence: evidence(row, cycles_per_ns),
        memory: counts.memory_of(row),
        mc_source: advice.mc_source.clone().filter(|_| advice.refused.is_none()),
        ..identified(one)
    };
    add_access(&mut own, one);
    own.inner = one.access.as_ref().and_then(|access| access.innermost()).map(|level| {
        let mut own = LoopRow { head: level.head.into(), ..LoopRow::default() };
        add_trips(&mut own, advice.trips);
        own.runs_on = advice.runs_on.and_then(TripCount::least);
        own
    });
    add_advice(&mut own, one, advice.clone());
    pace::add(&mut own, &advice, &bounds);
    own.unknown.extend(unknown);
    own
}

fn modules(counts: &Count) -> Vec<Module> {
    let mut paths: Vec<&String> = counts.loads.iter().map(|row| &row.module).collect();
    paths.sort();
    paths.dedup();
    let file = |path: &String| Module {
        path: path.clone(),
        kind: ModuleKind::File,
        build_id: pmu::build_id::of_file(Path::new(path)),
        ..Module::default()
    };
    paths.into_iter().map(file).collect()
}

/// The counts of the loops around a load, the innermost first.
fn loops(counts: &Count, module: &str, one: &Candidate) -> Vec<Option<Timed>> {
    let levels = one.access.as_ref().map(|access| &access.levels[..]).unwrap_or_default();
    let counted = |head: u64| {
        counts.loops.iter().find(|row| row.head.0 == head && row.module == module).map(timed)
    };
    levels.iter().map(|level| counted(level.head)).collect()
}

fn timed(row: &CountedLoop) -> Timed {
    let entered = row.entries.unwrap_or(0);
    let trips = Trips {
        taken: row.iterations.unwrap_or(0).saturating_sub(entered),
        entered,
        left: entered,
        is_complete: row.entries.is_some(),
        ..Trips::default()
    };
    Timed { trips, ..Timed::default() }
}

/// The timed executions of a load.
fn probed(counts: &Count, row: &LoadRow, cycles_per_ns: f64) -> Probed {
    let first = counts.timer.as_ref().and_then(|timer| timer.caches.first());
    let levels = served(row, first.map_or(0.0, |one| one.mean), cycles_per_ns);
    let why =
        row.reasons.iter().find_map(|one| one.split_once(": ").map(|(_, why)| why.to_owned()));
    Probed {
        executions: if levels.is_empty() {
            0
        } else {
            row.latency.as_ref().map_or(0, |one| one.samples)
        },
        untimed: why.or_else(|| row.reasons.first().cloned()),
        levels,
        hit: first.map_or(0.0, |one| one.mean) * cycles_per_ns,
        class: row.class.as_ref().map(|class| class.kind),
        steps: steps(counts, row),
    }
}

/// How long a stride goes on: that of the load, or of the load of its index.
fn steps(counts: &Count, row: &LoadRow) -> Option<Trips> {
    let own = row.class.as_ref()?;
    let class = match &own.of {
        Some(of) => {
            let index = |one: &&LoadRow| one.module == row.module && one.address == *of;
            counts.loads.iter().find(index)?.class.as_ref()?
        }
        None => own,
    };
    let (taken, left) = (class.steps?, class.breaks?);
    Some(Trips { taken, left, ..Trips::default() })
}

fn evidence(row: &LoadRow, cycles_per_ns: f64) -> Evidence {
    let samples = row.latency.as_ref().map_or(0, |one| one.samples);
    let mut found = Evidence {
        samples,
        latency_mean: row.latency.as_ref().map(|one| one.mean * cycles_per_ns),
        ..Evidence::default()
    };
    for one in &row.levels {
        let number = (one.share * samples as f64).round() as u64;
        match one.level {
            Level::L1 => found.levels.l1 = number,
            Level::L2 => found.levels.l2 = number,
            Level::L3 => found.levels.l3 = number,
            Level::Memory => found.levels.ram = number,
            Level::Cache(_) => found.levels.other += number,
        }
    }
    found
}

fn notes(counts: &Count, host: &Host) -> Vec<String> {
    let runs: Vec<String> = counts
        .cost
        .iter()
        .map(|one| match one.probes {
            0 => format!("{} {:.1} s", one.run, one.seconds),
            probes => format!("{} {:.1} s ({probes} probes)", one.run, one.seconds),
        })
        .collect();
    let mut notes = vec![
        format!("runs of the command: {}", runs.join(", ")),
        format!(
            "latencies are fenced, so nothing overlaps with them; cycles at {:.2} GHz, the clock that the block \
             profiler showed afterwards",
            host.cycles_per_ns
        ),
    ];
    notes.extend(host.in_flight.as_ref().err().map(|why| {
        format!(
            "distances may be longer than needed: how many misses are in flight is not known: {why}"
        )
    }));
    notes.extend(counts.notes.iter().cloned());
    let refused = counts.hot.iter().flat_map(|hot| &hot.functions);
    let named = refused.filter(|of| of.share >= NAMED);
    for (of, why) in named.filter_map(|of| Some((of, of.reason.as_ref()?))) {
        let share = 100.0 * of.share;
        notes.push(format!("{} ({share:.0} % of the samples) is not analysed: {why}", of.function));
    }
    notes
}
