//! The events of threads, in order → nested regions, and the times that a thread spends in regions, to attribute
//! samples of the same run.
//!
//! A region entered again inside itself is the same region: it counts an entry, but no time twice. The time of probes
//! inside a region is subtracted.

use crate::patch::{Unprobed, Wanted};
use std::collections::BTreeMap;
use std::time::Duration;

/// Effect of a site on its region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// It begins.
    Begin,
    /// It ends.
    End,
}

/// Name of the region of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Label {
    /// The address of the name is in the register with this number (in encodings).
    Register(u8),
    /// This name.
    Fixed(String),
    /// This function: open functions further down the stack at its entry were left otherwise.
    Function(String),
}

/// An instruction before which a region begins or ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Its function, or only the instruction itself.
    pub code: Wanted,
    /// Its address (p_vaddr).
    pub at: u64,
    /// Effect on the region.
    pub edge: Edge,
    /// Name of the region.
    pub label: Label,
}

/// Result of a run.
#[derive(Debug, Clone, Default)]
pub struct Marked {
    /// The regions of all threads.
    pub tree: Tree,
    /// By site: why it was not probed.
    pub refused: Vec<Option<Unprobed>>,
    /// Events without room in the log.
    pub lost: u64,
    /// From the start of the command to its end.
    pub wall: Duration,
    /// Exit of the command.
    pub exit: Option<pmu::Exit>,
    /// The signal that interrupted the run.
    pub interrupted: Option<i32>,
    /// Notes on the window of a process; empty for a command.
    pub notes: Vec<String>,
    /// Probes are still in the code of the process.
    pub remains: bool,
}

/// Most regions; further ones count for the region around them.
const MOST: usize = 20_000;
/// Deepest stack of open regions of a thread.
const DEEPEST: usize = 1 << 20;

/// A region: a name inside other regions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name: index in [`Tree::names`].
    pub name: usize,
    /// The region around it: index in [`Tree::nodes`].
    pub parent: Option<usize>,
}

/// Statistics of a thread in a region. Times are ticks of the time stamp counter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Number of entries.
    pub entries: u64,
    /// Entries inside itself.
    pub recursive: u64,
    /// Entries that never ended.
    pub unfinished: u64,
    /// Time from begin to end, without probes, of ended entries not inside itself.
    pub time: u64,
    /// The shortest of these times.
    pub shortest: u64,
    /// The longest of these times.
    pub longest: u64,
    /// Time of the probes at its begins and ends, not in `time`.
    pub edges: u64,
    /// Time of other probes inside it, subtracted from `time`.
    pub inside: u64,
}

impl Stats {
    /// Number of entries with a time.
    pub fn timed(&self) -> u64 {
        self.entries.saturating_sub(self.recursive).saturating_sub(self.unfinished)
    }

    /// Adds the statistics of another thread.
    pub fn add(&mut self, other: &Self) {
        let shortest = match (self.timed(), other.timed()) {
            (0, _) => other.shortest,
            (_, 0) => self.shortest,
            _ => self.shortest.min(other.shortest),
        };
        self.entries += other.entries;
        self.recursive += other.recursive;
        self.unfinished += other.unfinished;
        self.time += other.time;
        self.longest = self.longest.max(other.longest);
        self.edges += other.edges;
        self.inside += other.inside;
        self.shortest = shortest;
    }
}

/// A thread with regions.
#[derive(Debug, Clone, Default)]
pub struct Thread {
    /// Its process.
    pub process: i32,
    /// Its id, if its end was seen.
    pub tid: Option<i32>,
    /// Statistics by region.
    pub stats: BTreeMap<usize, Stats>,
    open: Vec<Open>,
    spans: Spans,
    /// Ends without a begin, by name.
    pub stray: BTreeMap<usize, u64>,
}

impl Thread {
    /// Its times in regions, in order, without unfinished ones.
    pub fn spans(&self) -> &[Span] {
        &self.spans.all
    }
}

/// An entered region.
#[derive(Debug, Clone, Copy)]
struct Open {
    node: usize,
    name: usize,
    /// The stack pointer at the entry of a function.
    stack: Option<u64>,
    /// Its begin.
    since: u64,
    /// Time in its first probe.
    edge: u64,
    /// Time in probes inside it.
    inside: u64,
    is_recursive: bool,
}

/// All regions.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    /// Names of regions.
    pub names: Vec<String>,
    /// Regions, each after the one around it.
    pub nodes: Vec<Node>,
    /// Threads in order of their first event.
    pub threads: Vec<Thread>,
    known: BTreeMap<(Option<usize>, usize), usize>,
    /// Executed markers.
    pub events: u64,
    /// Ticks in probes of markers.
    pub ticks: u64,
    /// Begins ignored since there were too many regions.
    pub left_out: u64,
    span_count: SpanCount,
}

impl Tree {
    /// Adds a thread; its index.
    pub fn thread(&mut self, process: i32) -> usize {
        self.threads.push(Thread { process, ..Thread::default() });
        self.threads.len() - 1
    }

    /// Begin of the first span beyond the limit.
    pub fn cut(&self) -> Option<u64> {
        self.span_count.cut
    }

    fn node(&mut self, parent: Option<usize>, name: usize) -> Option<usize> {
        if let Some(known) = self.known.get(&(parent, name)) {
            return Some(*known);
        }
        if self.nodes.len() >= MOST {
            return None;
        }
        self.nodes.push(Node { name, parent });
        self.known.insert((parent, name), self.nodes.len() - 1);
        Some(self.nodes.len() - 1)
    }

    /// A region begins; for a function, with the stack pointer.
    pub fn begin(&mut self, thread: usize, name: usize, stack: Option<u64>, times: Times) {
        self.events += 1;
        self.ticks += times.ticks();
        if let Some(stack) = stack {
            // Functions left by an exception or longjmp(3).
            let open = &mut self.threads[thread].open;
            while open.pop_if(|last| last.stack.is_some_and(|own| own <= stack)).is_some() {}
        }
        let open = &self.threads[thread].open;
        let same = open.iter().rev().find(|open| open.name == name).map(|open| open.node);
        let parent = open.last().map(|open| open.node);
        let is_full = open.len() >= DEEPEST;
        let node = same.or_else(|| self.node(parent, name)).filter(|_| !is_full);
        let Some(node) = node else {
            self.left_out += 1;
            return;
        };
        let is_recursive = same.is_some();
        let thread = &mut self.threads[thread];
        let stats = thread.stats.entry(node).or_default();
        stats.entries += 1;
        stats.recursive += u64::from(is_recursive);
        // Until it ends.
        stats.unfinished += u64::from(!is_recursive);
        let (since, edge) = (times.1, times.ticks());
        thread.open.push(Open { node, name, stack, since, edge, inside: 0, is_recursive });
        thread.spans.enter(Some(node), times, &mut self.span_count);
    }

    /// The innermost region with this name ends; those inside it never did.
    pub fn end(&mut self, thread: usize, name: usize, times: Times) {
        self.events += 1;
        self.ticks += times.ticks();
        let thread = &mut self.threads[thread];
        let Some(at) = thread.open.iter().rposition(|open| open.name == name) else {
            *thread.stray.entry(name).or_default() += 1;
            // The region around it contains this probe.
            thread.open.iter_mut().rev().take(1).for_each(|open| open.inside += times.ticks());
            return;
        };
        let cut: u64 = thread.open[at + 1..].iter().map(|open| open.edge + open.inside).sum();
        thread.open.truncate(at + 1);
        let Some(open) = thread.open.pop() else { return };
        let around = thread.open.last().map(|around| around.node);
        thread.spans.enter(around, times, &mut self.span_count);
        let inside = open.inside + cut;
        let edges = open.edge + times.ticks();
        if let Some(around) = thread.open.last_mut() {
            around.inside += inside + edges;
        }
        if open.is_recursive {
            return;
        }
        let took = times.0.saturating_sub(open.since).saturating_sub(inside);
        let stats = thread.stats.entry(open.node).or_default();
        stats.shortest = if stats.timed() == 0 { took } else { stats.shortest.min(took) };
        stats.unfinished -= 1;
        stats.time += took;
        stats.longest = stats.longest.max(took);
        stats.edges += edges;
        stats.inside += inside;
    }

    /// Events are missing: open regions of these threads may have ended.
    pub fn lose(&mut self, threads: impl Iterator<Item = usize>) {
        threads.for_each(|thread| {
            self.threads[thread].open.clear();
            self.threads[thread].spans.lose();
        });
    }

    /// A thread has ended.
    pub fn leave(&mut self, thread: usize, tid: i32) {
        self.threads[thread].tid = Some(tid);
        self.threads[thread].open = Vec::new();
        self.threads[thread].spans.lose();
    }
}

/// Most spans of all threads; later samples are not attributed.
const MOST_SPANS: usize = 1 << 22;

/// A time that a thread spent in a region, without inner regions and probes, in ticks of the time
/// stamp counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Begin.
    pub from: u64,
    /// End.
    pub to: u64,
    /// The innermost region: index in [`Tree::nodes`](super::Tree::nodes).
    pub node: u32,
}

/// Spans of all threads, against their limit.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SpanCount {
    number: usize,
    /// Begin of the first span without room.
    pub cut: Option<u64>,
}

/// The spans of a thread, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Spans {
    pub all: Vec<Span>,
    open: Option<(u64, u32)>,
}

impl Spans {
    /// After a marker the thread is in this region, or in none.
    pub fn enter(&mut self, node: Option<usize>, times: Times, count: &mut SpanCount) {
        if let Some((from, node)) = self.open.take().filter(|(from, _)| *from < times.0) {
            if count.number < MOST_SPANS {
                count.number += 1;
                self.all.push(Span { from, to: times.0, node });
            } else {
                count.cut = count.cut.or(Some(from));
            }
        }
        self.open = node.map(|node| (times.1, node as u32));
    }

    /// The region of the thread is unknown.
    pub fn lose(&mut self) {
        self.open = None;
    }
}

/// Begin and end of a marker's probe, in ticks.
#[derive(Debug, Clone, Copy)]
pub struct Times(pub u64, pub u64);

impl Times {
    /// Its length.
    pub fn ticks(self) -> u64 {
        self.1.saturating_sub(self.0)
    }
}

#[cfg(test)]
mod tests;
