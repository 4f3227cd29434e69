//! When samples were taken, by thread and call chain, for tools that show time; which threads have samples.

use super::Profile;
use super::callers::{INLINED, Named, StackFrame};
use super::functions::{UNKNOWN, names_at};
use super::moments::{Moments, TimedSample, TimedThread};
use crate::address_space::AddressSpaces;
use crate::files::SearchPaths;
use crate::module::ModuleAddress;
use crate::record::Record;
use crate::recording::Source;
use std::collections::{HashMap, HashSet};
use tma::Result;

/// Samples with their times.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Timeline {
    /// Threads, in order of their first samples.
    pub threads: Vec<TimedThread>,
    /// Functions in call chains.
    pub frames: Vec<StackFrame>,
    /// Call chains: numbers of `frames`, the outermost first.
    pub stacks: Vec<Vec<usize>>,
    /// The samples, in order of time.
    pub samples: Vec<TimedSample>,
    /// How many samples each of them stands for.
    pub every: u32,
}

impl Profile {
    /// The samples with their times; empty unless the filter asked for them.
    pub fn timeline(&mut self) -> Timeline {
        let Moments { threads, stacks, mut samples, every, .. } =
            std::mem::take(&mut self.gathered.moments);
        samples.sort_by_key(|sample| sample.time);
        let first = samples.first().map_or(0, |sample| sample.time);
        samples.iter_mut().for_each(|sample| sample.time -= first);
        let mut timeline = Timeline { threads, samples, every, ..Timeline::default() };
        let mut known = Known::new();
        let mut numbers: HashMap<StackFrame, usize> = HashMap::new();
        timeline.stacks.resize(stacks.len(), Vec::new());
        for (chain, number) in stacks {
            let functions = self.functions_of(&chain, &mut known).into_iter().rev();
            let frames = functions.map(|named| {
                let frame = StackFrame { name: named.name, module: named.module };
                *numbers.entry(frame).or_insert_with_key(|frame| {
                    timeline.frames.push(frame.clone());
                    timeline.frames.len() - 1
                })
            });
            timeline.stacks[number as usize] = frames.collect();
        }
        timeline
    }
}

/// Functions by place, those that were looked up.
pub(super) type Known = HashMap<ModuleAddress, Vec<Named>>;

impl Profile {
    /// The functions of a call chain, the innermost first: of each place those inlined there, then the one that its
    /// code is of.
    pub(super) fn functions_of(
        &mut self,
        chain: &[Option<ModuleAddress>],
        known: &mut Known,
    ) -> Vec<Named> {
        let mut functions = Vec::with_capacity(chain.len());
        for place in chain {
            match place {
                None => functions.push(Named::only(UNKNOWN)),
                Some(place) => functions.extend_from_slice(
                    known.entry(*place).or_insert_with(|| self.functions_at(*place)),
                ),
            }
        }
        // Without frame pointers the kernel follows whatever is in the register: a hundred unknown frames.
        functions.dedup_by(|a, b| a.name == UNKNOWN && b.name == UNKNOWN);
        functions
    }

    fn functions_at(&mut self, place: ModuleAddress) -> Vec<Named> {
        self.places_at(place).into_iter().map(|(named, _)| named).collect()
    }

    /// The functions at a place, the innermost first, each with the file and line where it is there, if known.
    pub(super) fn places_at(
        &mut self,
        place: ModuleAddress,
    ) -> Vec<(Named, Option<(String, u32)>)> {
        let module = &self.spaces.modules.all[place.module];
        let of = |name, short| Named { name, short, module: module.name().to_owned() };
        let (mut functions, mut own) = (Vec::new(), None);
        // The last line is of the function itself.
        for line in self.symbols.lines(module, place) {
            let at = line.file.zip(line.line);
            match line.inlined {
                Some(_) if !self.shows_inlined => {}
                Some(name) => functions.push((of(format!("{name}{INLINED}"), name), at)),
                None => own = at,
            }
        }
        let (name, short) = names_at(place, &self.spaces, &mut self.symbols);
        functions.push((of(name, short), own));
        functions
    }
}

/// A thread with samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Thread {
    /// Thread id.
    pub tid: u32,
    /// Name at its last sample; empty if unknown.
    pub name: String,
    /// Number of samples of all events.
    pub samples: u64,
}

/// Threads, names and fields in the samples of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overview {
    /// Threads, those with most samples first.
    pub threads: Vec<Thread>,
    /// Processes.
    pub processes: HashSet<u32>,
    /// Names that threads had at any time.
    pub names: HashSet<String>,
    /// Whether some have branches.
    pub branches: bool,
    /// Whether some have memory accesses.
    pub accesses: bool,
}

/// Looks through the records of a recording.
pub fn overview(source: &dyn Source) -> Result<Overview> {
    // Only thread names are needed: no program is searched.
    let mut spaces = AddressSpaces::new(SearchPaths::default(), &[]);
    let mut all: HashMap<u32, Thread> = HashMap::new();
    let mut found = Overview::default();
    source.each(&mut |record| match record {
        Record::Sample { sample, .. } => {
            found.processes.extend(sample.pid);
            found.branches |= !sample.branches.is_empty();
            found.accesses |= sample.data_source.is_some() || !sample.raw.is_empty();
            let Some(tid) = sample.tid else { return };
            let thread = all.entry(tid).or_default();
            (thread.tid, thread.samples) = (tid, thread.samples + 1);
            let name = sample.pid.and_then(|pid| spaces.thread_name(pid, tid));
            if let Some(name) = name.filter(|name| *name != thread.name) {
                thread.name = name.to_owned();
            }
        }
        other => {
            if let Record::Name { name, .. } = other
                && !found.names.contains(name)
            {
                found.names.insert(name.clone());
            }
            spaces.apply(other);
        }
    })?;
    found.threads = all.into_values().collect();
    found.threads.sort_by_key(|t| (std::cmp::Reverse(t.samples), t.tid));
    Ok(found)
}
