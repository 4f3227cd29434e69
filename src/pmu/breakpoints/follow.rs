//! A traced command: every process and thread of it is counted from its first instruction to its
//! end, each with breakpoints of its own, and stopped where windows begin and end.

use super::outcome::{Counted, Known, Outcome};
use super::place::{addresses, is_whole};
use super::refused::refused;
use super::request::{Ask, TICK};
use super::turns::{Mark, Marks, Turns};
use crate::perf::{Breakpoint, Child, Go, Signals, Stop, go, release, stop};
use nix::errno::Errno;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tma::error::Result;

/// System calls of the loader that are followed until the files are mapped; a dynamic program makes
/// about ten for each library.
const MOST_CALLS: u32 = 1_000;
/// A stopped thread waits so long for us: much less than a window takes.
const NAP: Duration = Duration::from_micros(50);
/// Time between readings of all counts: a tenth of what the hits at the start take.
const READ: Duration = Duration::from_millis(5);
/// Time between looks at what has been mapped since.
const LOOK: Duration = Duration::from_millis(20);
/// Most stops that are answered between two looks at the rest.
const MOST_STOPS: u32 = 1_000;

/// A traced thread.
struct Thread {
    marks: Marks,
    addresses: Vec<Option<u64>>,
    /// System calls that are still followed.
    calls: u32,
    /// It has stood still before its first instruction, so that its breakpoints could be set.
    begun: bool,
}

/// A traced command.
pub struct Follow<'a> {
    ask: Ask<'a>,
    leader: i32,
    threads: BTreeMap<i32, Thread>,
    turns: Turns,
    /// Hits in threads that have ended.
    ended: Vec<u64>,
    known: Vec<Known>,
    /// A breakpoint was refused.
    refused: Option<Errno>,
}

impl<'a> Follow<'a> {
    /// Process `leader` is traced and has not executed the command yet.
    pub fn new(ask: Ask<'a>, leader: i32) -> Self {
        let sites = ask.sites.len();
        let mut threads = BTreeMap::new();
        threads.insert(leader, Thread::new(sites));
        Self {
            ask,
            leader,
            threads,
            turns: Turns::new(&ask),
            ended: vec![0; sites],
            known: vec![Known::Never; sites],
            refused: None,
        }
    }

    /// Follows it to its end.
    ///
    /// # Errors
    /// Breakpoints are refused from the start.
    pub fn run(mut self, child: &mut Child, signals: &Signals) -> Result<Outcome> {
        let begin = Instant::now();
        let (mut read, mut looked, mut stopped) = (begin, begin, begin);
        let mut interrupted = None;
        while !child.has_ended() {
            if self.answer() {
                stopped = Instant::now();
            } else if stopped.elapsed() > TICK / 4 {
                std::thread::sleep(NAP);
            } else {
                std::thread::yield_now();
            }
            if let (Some(errno), true) = (self.refused, self.known.iter().all(never)) {
                self.let_go();
                return Err(refused(errno));
            }
            if read.elapsed() > READ {
                self.read();
                read = Instant::now();
            }
            if looked.elapsed() > LOOK {
                self.look();
                looked = Instant::now();
            }
            interrupted = signals.forward(child.pid).or(interrupted);
        }
        let wall = begin.elapsed();
        Ok(Outcome { wall, interrupted, ..self.finish() })
    }

    /// Answers the stops that there are. Whether there were any.
    fn answer(&mut self) -> bool {
        let mut any = false;
        let all: Vec<i32> = self.threads.keys().copied().collect();
        for tid in all {
            for _ in 0..MOST_STOPS {
                let Some(stop) = stop(tid, self.leader) else { break };
                any = true;
                if stop == Stop::Ended {
                    self.retire(tid);
                    break;
                }
                let signal = self.stopped(tid, stop);
                let calls = self.threads.get(&tid).map_or(0, |t| t.calls);
                go(
                    tid,
                    match (stop, calls) {
                        (Stop::Group, _) => Go::Listen,
                        (_, 0) => Go::On(signal),
                        _ => Go::ToCall(signal),
                    },
                );
            }
        }
        any
    }

    /// A thread has stopped. The signal that it is to get.
    fn stopped(&mut self, tid: i32, stop: Stop) -> i32 {
        match stop {
            Stop::Signal(signal) => return signal,
            Stop::Breakpoint(address) => {
                if let Some(thread) = self.threads.get_mut(&tid) {
                    self.turns.reached(&mut thread.marks, address);
                }
            }
            Stop::Born(child) => {
                // Its memory is laid out as its parent's.
                let parent = self.threads.get(&tid);
                let (places, calls) =
                    parent.map_or_else(Default::default, |t| (t.addresses.clone(), t.calls));
                let sites = self.ask.sites.len();
                let thread = Thread { addresses: places, calls, ..Thread::new(sites) };
                self.threads.entry(child).or_insert(thread);
            }
            Stop::Begun => {
                self.set(tid, Known::Whole);
                if let Some(thread) = self.threads.get_mut(&tid) {
                    thread.begun = true;
                }
            }
            Stop::Exec => {
                self.retire(tid);
                let sites = self.ask.sites.len();
                let thread = Thread { calls: MOST_CALLS, begun: true, ..Thread::new(sites) };
                self.threads.insert(tid, thread);
                self.find(tid, Known::Whole);
            }
            Stop::Call => {
                self.find(tid, Known::Whole);
                if let Some(thread) = self.threads.get_mut(&tid) {
                    thread.calls = if thread.is_set() { 0 } else { thread.calls.saturating_sub(1) };
                }
            }
            Stop::Group | Stop::Ended => {}
        }
        0
    }

    /// Looks for the places in a thread's memory, and sets what is found.
    fn find(&mut self, tid: i32, known: Known) {
        let found = addresses(tid, self.ask.sites);
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.addresses = found;
            self.set(tid, known);
        }
    }

    /// Sets what is not set yet in a thread whose addresses are known.
    fn set(&mut self, tid: i32, known: Known) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        for (at, address) in thread.addresses.iter().enumerate() {
            let (Some(address), None) = (*address, &thread.marks[at]) else { continue };
            let whole = match Breakpoint::open_stopping(tid, address) {
                Ok(breakpoint) => {
                    let mut mark = Mark::new(breakpoint, address);
                    self.turns.born(at, &mut mark);
                    thread.marks[at] = Some(mark);
                    known
                }
                Err(errno) => {
                    self.refused.get_or_insert(errno);
                    Known::Late
                }
            };
            self.known[at] = match self.known[at] {
                Known::Never if whole == Known::Whole => Known::Whole,
                Known::Never if self.refused.is_some() => Known::Never,
                Known::Whole if whole == Known::Whole => Known::Whole,
                _ => Known::Late,
            };
        }
    }

    /// A thread has ended, or become another program.
    fn retire(&mut self, tid: i32) {
        let Some(thread) = self.threads.remove(&tid) else { return };
        for (sum, count) in self.ended.iter_mut().zip(self.turns.ended(thread.marks)) {
            *sum += count;
        }
    }

    fn hits(&mut self) -> Vec<u64> {
        let mut hits = self.ended.clone();
        for thread in self.threads.values_mut() {
            for (sum, mark) in hits.iter_mut().zip(&mut thread.marks) {
                *sum += mark.as_mut().map_or(0, Mark::count);
            }
        }
        hits
    }

    /// Finds what has become too hot.
    fn read(&mut self) {
        let hits = self.hits();
        for at in 0..hits.len() {
            if hits[at] >= self.turns.most(at, &hits, &self.ask.limits)
                && self.turns.sampled[at].is_none()
            {
                let threads = self.threads.values_mut().map(|t| &mut t.marks);
                self.turns.leave(at, (&hits, &self.ended), threads);
            }
        }
        self.threads.values_mut().for_each(|t| self.turns.look(&mut t.marks));
    }

    /// Looks for files that were mapped since.
    fn look(&mut self) {
        let is_open = |t: &Thread| t.begun && t.calls == 0 && !t.is_set();
        let open = |(tid, t): (&i32, &Thread)| is_open(t).then_some(*tid);
        let some: Vec<i32> =
            self.threads.iter().filter_map(open).filter(|t| is_whole(*t)).collect();
        some.into_iter().for_each(|tid| self.find(tid, Known::Late));
    }

    fn finish(mut self) -> Outcome {
        self.let_go();
        let counted = |(at, &hits): (usize, &u64)| {
            let known = match (&self.turns.sampled[at], self.known[at]) {
                (Some(_), Known::Whole) => Known::Windows,
                (_, known) => known,
            };
            Counted { hits, known, ..Counted::default() }
        };
        let counted = self.ended.iter().enumerate().map(counted).collect();
        // What was late in some process is unknown there, whatever its windows tell.
        let late = |(at, sampled)| if self.known[at] == Known::Whole { sampled } else { None };
        let sampled = self.turns.sampled.into_iter().enumerate().map(late).collect();
        Outcome { counted, sampled, ..Outcome::default() }
    }

    /// Lets whatever still runs go on by itself.
    fn let_go(&mut self) {
        for tid in self.threads.keys().copied().collect::<Vec<_>>() {
            self.retire(tid);
            if tid != self.leader {
                release(tid);
            }
        }
    }
}

impl Thread {
    fn new(sites: usize) -> Self {
        let marks = (0..sites).map(|_| None).collect();
        Self { marks, addresses: vec![None; sites], calls: 0, begun: false }
    }

    fn is_set(&self) -> bool {
        self.marks.iter().all(Option::is_some)
    }
}

fn never(known: &Known) -> bool {
    *known == Known::Never
}
