//! A traced command: each of its processes and threads is counted from its first instruction to its
//! end, with breakpoints of its own, and stopped where windows begin and end.

use super::addresses::{addresses, is_whole};
use super::outcome::{Counted, Coverage, Outcome};
use super::refused::refused;
use super::request::{Ask, TICK};
use super::window_sampling::{ThreadBreakpoint, ThreadBreakpoints, WindowSampling};
use crate::perf::{Breakpoint, Child, Resume, Signals, Stop, release, resume, stop};
use nix::errno::Errno;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tma::error::Result;

/// System calls that are traced until all files are mapped; the dynamic loader makes about ten per
/// library.
const MOST_CALLS: u32 = 1_000;
/// Time between polls for stopped threads: much less than a window takes.
const POLL: Duration = Duration::from_micros(50);
/// Time between readings of all counts: a tenth of the time that hits at the start take.
const READ: Duration = Duration::from_millis(5);
/// Time between searches for newly mapped files.
const SEARCH: Duration = Duration::from_millis(20);
/// Maximum number of stops of a thread that are handled before the other threads.
const MOST_STOPS: u32 = 1_000;

/// A traced thread.
struct Thread {
    breakpoints: ThreadBreakpoints,
    addresses: Vec<Option<u64>>,
    /// System calls still to be traced.
    calls: u32,
    /// It has stopped before its first instruction, where breakpoints were set.
    begun: bool,
}

/// A traced command.
pub struct TracedCommand<'a> {
    ask: Ask<'a>,
    leader: i32,
    threads: BTreeMap<i32, Thread>,
    sampling: WindowSampling,
    /// Hits in threads that have ended.
    ended: Vec<u64>,
    coverage: Vec<Coverage>,
    /// A breakpoint was refused.
    refused: Option<Errno>,
}

impl<'a> TracedCommand<'a> {
    /// Process `leader` is traced and has not executed the command yet.
    pub fn new(ask: Ask<'a>, leader: i32) -> Self {
        let sites = ask.sites.len();
        let mut threads = BTreeMap::new();
        threads.insert(leader, Thread::new(sites));
        Self {
            ask,
            leader,
            threads,
            sampling: WindowSampling::new(&ask),
            ended: vec![0; sites],
            coverage: vec![Coverage::Never; sites],
            refused: None,
        }
    }

    /// Counts until the command ends.
    ///
    /// # Errors
    /// The kernel refuses every breakpoint.
    pub fn run(mut self, child: &mut Child, signals: &Signals) -> Result<Outcome> {
        let begin = Instant::now();
        let (mut read, mut searched, mut stopped) = (begin, begin, begin);
        let mut interrupted = None;
        while !child.has_ended() {
            if self.handle_stops() {
                stopped = Instant::now();
            } else if stopped.elapsed() > TICK / 4 {
                std::thread::sleep(POLL);
            } else {
                std::thread::yield_now();
            }
            if let (Some(errno), true) = (self.refused, self.coverage.iter().all(never)) {
                self.stop_tracing();
                return Err(refused(errno));
            }
            if read.elapsed() > READ {
                self.read();
                read = Instant::now();
            }
            if searched.elapsed() > SEARCH {
                self.search();
                searched = Instant::now();
            }
            interrupted = signals.forward(child.pid).or(interrupted);
        }
        let wall = begin.elapsed();
        Ok(Outcome { wall, interrupted, ..self.finish() })
    }

    /// Handles all stops; whether there were any.
    fn handle_stops(&mut self) -> bool {
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
                resume(
                    tid,
                    match (stop, calls) {
                        (Stop::GroupStop, _) => Resume::Listen,
                        (_, 0) => Resume::Continue(signal),
                        _ => Resume::ToSystemCall(signal),
                    },
                );
            }
        }
        any
    }

    /// Handles a stop of a thread and returns the signal to deliver to it.
    fn stopped(&mut self, tid: i32, stop: Stop) -> i32 {
        match stop {
            Stop::Signal(signal) => return signal,
            Stop::Breakpoint(address) => {
                if let Some(thread) = self.threads.get_mut(&tid) {
                    self.sampling.reached(&mut thread.breakpoints, address);
                }
            }
            Stop::Created(child) => {
                // Its address space is a copy of its parent's.
                let parent = self.threads.get(&tid);
                let (addresses, calls) =
                    parent.map_or_else(Default::default, |t| (t.addresses.clone(), t.calls));
                let sites = self.ask.sites.len();
                let thread = Thread { addresses, calls, ..Thread::new(sites) };
                self.threads.entry(child).or_insert(thread);
            }
            Stop::Attached => {
                self.set(tid, Coverage::Whole);
                if let Some(thread) = self.threads.get_mut(&tid) {
                    thread.begun = true;
                }
            }
            Stop::Exec => {
                self.retire(tid);
                let sites = self.ask.sites.len();
                let thread = Thread { calls: MOST_CALLS, begun: true, ..Thread::new(sites) };
                self.threads.insert(tid, thread);
                self.find(tid, Coverage::Whole);
            }
            Stop::SystemCall => {
                self.find(tid, Coverage::Whole);
                if let Some(thread) = self.threads.get_mut(&tid) {
                    thread.calls = if thread.is_set() { 0 } else { thread.calls.saturating_sub(1) };
                }
            }
            Stop::GroupStop | Stop::Ending | Stop::Ended => {}
        }
        0
    }

    /// Finds the sites in a thread's address space, and sets breakpoints there.
    fn find(&mut self, tid: i32, coverage: Coverage) {
        let found = addresses(tid, self.ask.sites);
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.addresses = found;
            self.set(tid, coverage);
        }
    }

    /// Sets missing breakpoints of a thread whose addresses are known.
    fn set(&mut self, tid: i32, coverage: Coverage) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        for (at, address) in thread.addresses.iter().enumerate() {
            let (Some(address), None) = (*address, &thread.breakpoints[at]) else { continue };
            let whole = match Breakpoint::open_stopping(tid, address) {
                Ok(breakpoint) => {
                    let mut breakpoint = ThreadBreakpoint::new(breakpoint, address);
                    self.sampling.born(at, &mut breakpoint);
                    thread.breakpoints[at] = Some(breakpoint);
                    coverage
                }
                Err(errno) => {
                    self.refused.get_or_insert(errno);
                    Coverage::Late
                }
            };
            self.coverage[at] = match self.coverage[at] {
                Coverage::Never if whole == Coverage::Whole => Coverage::Whole,
                Coverage::Never if self.refused.is_some() => Coverage::Never,
                Coverage::Whole if whole == Coverage::Whole => Coverage::Whole,
                _ => Coverage::Late,
            };
        }
    }

    /// Takes the counts of a thread that has ended or executes another program.
    fn retire(&mut self, tid: i32) {
        let Some(thread) = self.threads.remove(&tid) else { return };
        for (sum, count) in self.ended.iter_mut().zip(self.sampling.ended(thread.breakpoints)) {
            *sum += count;
        }
    }

    fn hits(&mut self) -> Vec<u64> {
        let mut hits = self.ended.clone();
        for thread in self.threads.values_mut() {
            for (sum, breakpoint) in hits.iter_mut().zip(&mut thread.breakpoints) {
                *sum += breakpoint.as_mut().map_or(0, ThreadBreakpoint::count);
            }
        }
        hits
    }

    /// Reads all counts and finds sites that have become too hot.
    fn read(&mut self) {
        let hits = self.hits();
        for at in 0..hits.len() {
            if hits[at] >= self.sampling.most(at, &hits, &self.ask.limits)
                && self.sampling.sampled[at].is_none()
            {
                let threads = self.threads.values_mut().map(|t| &mut t.breakpoints);
                self.sampling.leave(at, (&hits, &self.ended), threads);
            }
        }
        self.threads.values_mut().for_each(|t| self.sampling.check(&mut t.breakpoints));
    }

    /// Finds sites in files that were mapped since.
    fn search(&mut self) {
        let is_open = |t: &Thread| t.begun && t.calls == 0 && !t.is_set();
        let open = |(tid, t): (&i32, &Thread)| is_open(t).then_some(*tid);
        let some: Vec<i32> =
            self.threads.iter().filter_map(open).filter(|t| is_whole(*t)).collect();
        some.into_iter().for_each(|tid| self.find(tid, Coverage::Late));
    }

    fn finish(mut self) -> Outcome {
        self.stop_tracing();
        let counted = |(at, &hits): (usize, &u64)| {
            let coverage = match (&self.sampling.sampled[at], self.coverage[at]) {
                (Some(_), Coverage::Whole) => Coverage::Windows,
                (_, coverage) => coverage,
            };
            Counted { hits, coverage, ..Counted::default() }
        };
        let counted = self.ended.iter().enumerate().map(counted).collect();
        // Windows do not cover a process in which the breakpoints were set late.
        let late =
            |(at, sampled)| if self.coverage[at] == Coverage::Whole { sampled } else { None };
        let sampled = self.sampling.sampled.into_iter().enumerate().map(late).collect();
        Outcome { counted, sampled, ..Outcome::default() }
    }

    /// Takes the counts of all threads and ends tracing; the command continues.
    fn stop_tracing(&mut self) {
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
        let breakpoints = (0..sites).map(|_| None).collect();
        Self { breakpoints, addresses: vec![None; sites], calls: 0, begun: false }
    }

    fn is_set(&self) -> bool {
        self.breakpoints.iter().all(Option::is_some)
    }
}

fn never(coverage: &Coverage) -> bool {
    *coverage == Coverage::Never
}
