//! Samples → windows: the last branches before each, with their modules, without what the hardware got wrong. Branches
//! with their targets are numbered: events repeat few of them.

use super::counted::Counts;
use profile::address_space::{AddressSpaces, ModuleAddress};
use profile::event::Event;
use profile::record::Record;
use profile::recording::Stream;
use profile::sample::{Branch, Recorded, Sample};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use tma::Result;

/// A branch and one of its targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Edge {
    /// The branch; `None` outside all known mappings.
    pub from: Option<ModuleAddress>,
    /// Its target.
    pub to: Option<ModuleAddress>,
}

/// The edges of all events of a recording, numbered from 0 in the order they come.
#[derive(Debug)]
pub struct Edges {
    all: Vec<(usize, Edge)>,
    numbers: FxHashMap<(usize, Edge), u32>,
    /// Edges resolved lately, each where its addresses say.
    recent: Vec<Option<Recent>>,
    /// How often the mappings have changed.
    now: u64,
}

/// An edge as it was resolved, and the number of mapping changes until then.
#[derive(Debug, Clone, Copy)]
struct Recent {
    at: u64,
    event: usize,
    pid: u32,
    from: u64,
    to: u64,
    number: u32,
}

/// How many are remembered, a power of 2.
const REMEMBERED: usize = 1 << 11;

impl Default for Edges {
    fn default() -> Self {
        let recent = vec![None; REMEMBERED];
        Self { all: Vec::new(), numbers: FxHashMap::default(), recent, now: 0 }
    }
}

impl Edges {
    /// The edge of this number.
    pub fn get(&self, number: u32) -> Edge {
        self.all[number as usize].1
    }

    /// The event of the edge of this number.
    pub fn event(&self, number: u32) -> usize {
        self.all[number as usize].0
    }

    /// The number of an edge of an event.
    pub fn number(&self, event: usize, edge: &Edge) -> Option<u32> {
        self.numbers.get(&(event, *edge)).copied()
    }

    /// After the mappings have changed.
    pub fn forget(&mut self) {
        self.now += 1;
    }

    /// The number of the edge of a branch in a process as it is now.
    pub fn resolve(
        &mut self,
        spaces: &mut AddressSpaces,
        event: usize,
        pid: u32,
        branch: &Branch,
    ) -> u32 {
        let Branch { from, to, .. } = *branch;
        let mixed = (from ^ from >> 11).wrapping_add(to << 3 ^ to >> 7) ^ u64::from(pid);
        let slot = mixed as usize % REMEMBERED;
        match &self.recent[slot] {
            Some(recent)
                if (recent.from, recent.to, recent.pid) == (from, to, pid)
                    && (recent.at, recent.event) == (self.now, event) =>
            {
                recent.number
            }
            _ => {
                let mut place = |ip| spaces.resolve(pid, ip, None);
                let edge = Edge { from: place(from), to: place(to) };
                let number = self.add(event, edge);
                self.recent[slot] = Some(Recent { at: self.now, event, pid, from, to, number });
                number
            }
        }
    }

    fn add(&mut self, event: usize, edge: Edge) -> u32 {
        *self.numbers.entry((event, edge)).or_insert_with(|| {
            self.all.push((event, edge));
            (self.all.len() - 1) as u32
        })
    }
}

/// Straight code between two branches is shorter than this (AutoFDO and llvm-profgen drop longer ranges:
/// they come from lost entries).
pub const LONGEST_RANGE: u64 = 1 << 20;
/// The counter of cycles has 16 bits and stays at its end.
const SATURATED: u16 = u16::MAX;

/// Entries and ranges that are not used, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Skipped {
    /// Newest entries that repeat the one before, with no way from its target to its source (Skylake).
    pub duplicated: u64,
    /// Entries executed on a wrong path of speculation only.
    pub wrong_path: u64,
    /// Ranges that end before they begin.
    pub backward: u64,
    /// Ranges over [`LONGEST_RANGE`].
    pub long: u64,
    /// Ranges from one module into another.
    pub between_modules: u64,
    /// Times at the end of their counter; the entries count.
    pub saturated: u64,
    /// Entries with an end outside all known mappings; they count where the other end is.
    pub unmapped: u64,
}

/// A taken branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Number of branch and target together.
    pub edge: u32,
    /// The branch.
    pub from: Option<ModuleAddress>,
    /// Its target.
    pub to: Option<ModuleAddress>,
    /// Whether it was mispredicted, if the hardware reports it.
    pub mispredicted: Option<bool>,
    /// Cycles since the branch before it, if the hardware reports them.
    pub cycles: Option<u16>,
}

/// Straight code that ran between two branches: from the target of one to the other itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Range {
    /// Number of its module.
    pub module: usize,
    /// Address of its first instruction (p_vaddr).
    pub first: u64,
    /// Address of the branch that ends it.
    pub last: u64,
}

/// The last branches before a sample.
#[derive(Debug, Clone, Default)]
pub struct Window {
    /// The sample's own address.
    pub place: Option<ModuleAddress>,
    /// The branches, oldest first.
    pub steps: Vec<Step>,
    /// The branch before them, which the last window ended with: both are pieces of one trace.
    pub previous: Option<Step>,
    /// Whether it is a sample, not a piece of a trace.
    pub is_sample: bool,
    /// How many entries were recorded.
    pub entries: u64,
    /// How many executions each of its branches stands for, if the sampled event shows it.
    pub weight: Option<f64>,
    /// Entries left out of `steps`, and of their times.
    pub skipped: Skipped,
}

/// Calls `visit` with the event and the window of each sample, in order of time. Returns the limits of the
/// records that a report must state.
///
/// # Errors
/// The recording cannot be read.
pub fn windows(
    stream: &Stream,
    spaces: &mut AddressSpaces,
    visit: &mut dyn FnMut(usize, &Window),
) -> Result<Vec<String>> {
    numbered(stream, spaces, &mut Edges::default(), visit)
}

/// As [`windows`]; the steps have the numbers of their `edges`.
pub(super) fn numbered(
    stream: &Stream,
    spaces: &mut AddressSpaces,
    edges: &mut Edges,
    visit: &mut dyn FnMut(usize, &Window),
) -> Result<Vec<String>> {
    let mut window = Window::default();
    stream.records.each(&mut |record| match record {
        Record::Sample { event, sample } => {
            if spaces.advance(sample.time) {
                edges.forget();
            }
            let pid = sample.pid.unwrap_or(u32::MAX);
            window.place = sample.ip.and_then(|ip| spaces.resolve(pid, ip, sample.user));
            window.fill(&sample, &mut |branch| {
                let number = edges.resolve(spaces, event, pid, branch);
                Step::new(number, edges, branch)
            });
            let sampled = stream.about.events.get(event).filter(|_| window.is_sample);
            window.weight = sampled.and_then(|sampled| weight(sampled, &sample, &window));
            visit(event, &window);
        }
        other => {
            spaces.apply(&other);
            edges.forget();
        }
    })
}

impl Step {
    fn new(number: u32, edges: &Edges, branch: &Branch) -> Self {
        let edge = edges.get(number);
        let cycles = branch.cycles.filter(|cycles| *cycles != SATURATED);
        let mispredicted = branch.mispredicted;
        Self { edge: number, from: edge.from, to: edge.to, mispredicted, cycles }
    }
}

/// A sample stands for its period. Of cycles, a window shows those of its branches: slow code, which is sampled
/// more often, has windows of more cycles, so that weights of period / cycles are in proportion to executions.
fn weight(event: &Event, sample: &Sample, window: &Window) -> Option<f64> {
    let fixed = (!event.by_frequency).then_some(event.period);
    let period = sample.period.or(fixed).filter(|period| *period > 0)? as f64;
    let own: f64 = match Counts::of(&event.name) {
        Counts::TakenBranches => window.steps.len() as f64,
        Counts::Cycles => {
            let steps = window.steps.get(1..)?.iter();
            steps.map(|step| step.cycles.map(f64::from)).sum::<Option<f64>>()?
        }
        Counts::Branches | Counts::Time | Counts::NotRecorded | Counts::Other => return None,
    };
    (own > 0.0).then(|| period / own)
}

impl Window {
    /// Becomes the window of a sample, but for its place.
    fn fill(&mut self, sample: &Sample, resolve: &mut dyn FnMut(&Branch) -> Step) {
        self.entries = sample.branches.len() as u64;
        self.skipped = Skipped::default();
        self.is_sample = sample.recorded == Recorded::Sampled;
        let continues = sample.recorded == Recorded::TraceContinues;
        self.previous = self.steps.last().copied().filter(|_| continues);
        self.steps.clear();
        let mut of_path = sample.branches.iter().enumerate().filter(|(_, b)| !b.wrong_path);
        let repeated = match (of_path.next(), of_path.next()) {
            (Some((at, newest)), Some((_, before)))
                if (newest.from, newest.to) == (before.from, before.to)
                    && newest.to > newest.from =>
            {
                Some(at)
            }
            _ => None,
        };
        for (at, branch) in sample.branches.iter().enumerate().rev() {
            if branch.wrong_path {
                self.skipped.wrong_path += 1;
                continue;
            }
            if repeated == Some(at) {
                self.skipped.duplicated = 1;
                continue;
            }
            let step = resolve(branch);
            self.skipped.unmapped += u64::from(step.from.is_none() || step.to.is_none());
            self.skipped.saturated += u64::from(branch.cycles == Some(SATURATED));
            self.steps.push(step);
        }
    }

    /// The ranges between the branches, each with the branch that ends it; `None` where what is recorded
    /// cannot be one, which is counted.
    pub fn ranges<'a>(
        &'a self,
        skipped: &'a mut Skipped,
    ) -> impl Iterator<Item = (Option<Range>, &'a Step)> {
        let older = self.previous.iter().chain(&self.steps);
        let newer = self.steps.iter().skip(usize::from(self.previous.is_none()));
        older.zip(newer).map(|(older, newer)| {
            let (Some(first), Some(last)) = (older.to, newer.from) else { return (None, newer) };
            if first.module != last.module {
                skipped.between_modules += 1;
                return (None, newer);
            }
            if last.address < first.address {
                skipped.backward += 1;
                return (None, newer);
            }
            if last.address - first.address > LONGEST_RANGE {
                skipped.long += 1;
                return (None, newer);
            }
            let range = Range { module: first.module, first: first.address, last: last.address };
            (Some(range), newer)
        })
    }
}

impl Skipped {
    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        self.duplicated += other.duplicated;
        self.wrong_path += other.wrong_path;
        self.backward += other.backward;
        self.long += other.long;
        self.between_modules += other.between_modules;
        self.saturated += other.saturated;
        self.unmapped += other.unmapped;
    }
}
