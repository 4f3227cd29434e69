//! Recordings → what is known of loops and loads, by program and address.

use crate::recorded_loads::code::Code;
use crate::recorded_loads::event::Sampled;
use crate::recorded_loads::executed::{ModuleKey, key, may_have_stacks};
use crate::recorded_loads::gather::{Gathered, gather};
use crate::recorded_trips;
use branches::stacks::{Analysis, LoopSum, Sums, analyse};
use loads::prefetch::Timed;
use loads::recorded::{Operation, Sum};
use profile::files::SearchPaths;
use profile::recording::Stream;
use report::documents::prefetch::EventRow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tma::Result;

/// A load in a program.
pub(super) type LoadKey = (ModuleKey, u64);

/// The samples of an event's loads.
#[derive(Debug, Default)]
pub(super) struct Loads {
    pub event: usize,
    pub least_latency: Option<u64>,
    pub total: Sum,
    pub sums: BTreeMap<LoadKey, Sum>,
}

/// A recorded loop.
#[derive(Debug)]
pub(super) struct Loop {
    pub event: usize,
    pub taken: u64,
    /// Share of the back edges of the event.
    pub share: f64,
    pub timed: Timed,
}

/// Everything that recordings tell.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    pub events: Vec<EventRow>,
    pub loads: Vec<Loads>,
    /// By program and head; of several events that with most iterations.
    pub loops: HashMap<(ModuleKey, u64), Loop>,
    targets: HashMap<ModuleKey, BTreeSet<u64>>,
    /// Code of the recordings.
    pub codes: Vec<Code>,
}

impl Evidence {
    /// Adds a recording, whose events have the numbers from `first` on.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn add(&mut self, recording: &Stream, first: usize, search: &SearchPaths) -> Result<()> {
        let about = &recording.about;
        let gathered = gather(recording, search)?;
        let mut stacks = match about.events.iter().any(may_have_stacks) {
            true => analyse(recording, None, search)?.0,
            false => Vec::new(),
        };
        for (own, event) in about.events.iter().enumerate() {
            let mut row = EventRow {
                event: first + own,
                source: about.source.clone(),
                name: event.name.clone(),
                ..EventRow::default()
            };
            let found = stacks.get_mut(own).and_then(Option::take);
            if let Some(found) = found.filter(|found| found.sums.entries > 0) {
                row.stacks = found.sums.samples;
                row.has_cycles = Some(found.sums.has_cycles());
                self.add_loops(&found, row.event);
            }
            let least = Sampled::of(event).least_latency();
            if let Some(loads) = samples(&gathered, own, row.event, least) {
                row.loads = loads.total.samples;
                row.least_latency = least;
                self.loads.push(loads);
            }
            if row.stacks > 0 || row.loads > 0 {
                self.events.push(row);
            }
        }
        self.codes.push(gathered.code);
        Ok(())
    }

    /// Once all recordings are added: blocks begin where branches were seen to go.
    pub fn finish(&mut self) {
        for code in &mut self.codes {
            let known = code.modules.iter().enumerate();
            let targets = known
                .filter_map(|(number, module)| {
                    Some((number, self.targets.get(&key(module))?.clone()))
                })
                .collect();
            code.observe(targets);
        }
    }

    fn add_loops(&mut self, found: &Analysis, event: usize) {
        for to in found.sums.edges.keys().filter_map(|edge| edge.to) {
            if let Some(module) = found.places.module(to.module) {
                self.targets.entry(key(module)).or_default().insert(to.address);
            }
        }
        let all: u64 = found.loops.iter().map(|(_, sum)| sum.taken).sum();
        for (shape, sum) in &found.loops {
            let Some(module) = found.places.module(shape.module) else { continue };
            let own = Loop {
                event,
                taken: sum.taken,
                share: sum.taken as f64 / all.max(1) as f64,
                timed: timed(sum, &found.sums),
            };
            let place = (key(module), shape.head);
            if self.loops.get(&place).is_none_or(|known| known.taken < own.taken) {
                self.loops.insert(place, own);
            }
        }
    }
}

fn timed(sum: &LoopSum, of: &Sums) -> Timed {
    Timed {
        iterations: sum.clean.counts().collect(),
        mispredicted: sum.iterations.number() - sum.clean.number(),
        has_cycles: of.has_cycles(),
        trips: recorded_trips::recorded(sum, of),
        ..Timed::default()
    }
}

/// The samples of loads of an event, if it has some.
fn samples(gathered: &Gathered, own: usize, event: usize, least: Option<u64>) -> Option<Loads> {
    let sums = gathered.events.get(own)?;
    let total = sums.totals.get(&Operation::Load).filter(|sum| sum.samples > 0)?;
    let mut loads = Loads { event, least_latency: least, total: total.clone(), ..Loads::default() };
    for ((operation, site), sum) in &sums.sites {
        let place = site.place().filter(|_| *operation == Operation::Load);
        if let Some(place) = place
            && let Some(module) = gathered.code.modules.get(place.module)
        {
            loads.sums.insert((key(module), place.address), sum.clone());
        }
    }
    Some(loads)
}
