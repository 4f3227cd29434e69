//! Chooses which entries of the block to capture.

use super::request::{self, Afterwards, Breakpoints, Entry, Request, Stop};
use super::snapshot::{End, Walk};
use super::stopped::Stopped;
use crate::process::{Event, Image, Kind, Traced};
use pmu::Exit;
use std::collections::HashSet;
use std::time::{Duration, Instant};
use tma::{Error, Result};

/// The entries captured by default: a program may end before the last of them.
const AUTO: [u64; 4] = [1, 10, 100, 1000];
/// Wait limit for the next start of the loop.
const NEXT_START: Duration = Duration::from_secs(1);

/// A capture with fewer iterations than this before a call is repeated at a later entry, at most
/// `RETRIES` times.
const FEWEST: u64 = 4;
const RETRIES: u32 = 8;

/// Time limit for further executions.
const FURTHER: Duration = Duration::from_secs(2);
/// Poll interval of the request to end.
const NOTICE: Duration = Duration::from_millis(100);

/// Runs the command and calls `take` at the entries to capture; the results of the chosen entry and
/// of further executions of the loop.
///
/// # Errors
/// The place is not in the file; the command cannot be started or traced, ends before the entry, or `take` fails.
pub fn visit<T: AsRef<Walk>>(
    request: &Request,
    take: impl FnMut(&mut Stopped<'_>) -> Result<T>,
) -> Result<(T, Vec<T>)> {
    let (address, offset) = request::place(&request.image, request.place)?;
    let image =
        Image::new(&request.image).map_err(|e| tma::error::unreadable(&request.image, &e))?;
    let kind = match request.breakpoints {
        Breakpoints::Auto => Kind::Debug,
        Breakpoints::Int3 => Kind::Int3,
    };
    let mut traced = Traced::start(&request.command, image, offset, kind)?;
    let mut entries = Entries::new(request, address, take);
    let how = entries.run(&mut traced);
    let was_mapped = traced.was_mapped();
    let exit = match (&how, request.afterwards) {
        (Ok(How::Ended), _) => traced.exit(),
        (Ok(_), Afterwards::Continue) => traced.release(),
        _ => {
            traced.kill();
            None
        }
    };
    match (how?, entries.taken) {
        (_, Some(taken)) => Ok((taken, entries.further)),
        (how, None) => Err(never(request, how, entries.seen, was_mapped, exit)),
    }
}

/// End of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// The entry was captured.
    Taken,
    /// The command has ended.
    Ended,
    /// The time limit was reached.
    TimedOut,
}

/// State of the search.
struct Entries<'a, T, F> {
    /// Address of the block in its file.
    address: u64,
    take: F,
    taken: Option<T>,
    /// Further executions, and the wanted number.
    further: Vec<T>,
    executions: usize,
    /// Entries of all threads.
    seen: u64,
    /// Entries still to be captured.
    wanted: &'a [u64],
    number: u64,
    /// The wanted entry begins an execution of the loop.
    is_start: bool,
    /// First entry at which the next further execution may be captured.
    next: Option<u64>,
    /// Threads that have entered the block before.
    threads: HashSet<i32>,
    /// The thread that exited the loop in its last walk: its next entry is a start of the loop.
    left: Option<i32>,
    /// Captures repeated because a call came too soon.
    retries: u32,
    deadline: Instant,
    stop: &'a Stop,
    /// Time limit after the first entry.
    time: Duration,
    is_late: bool,
}

impl<'a, T: AsRef<Walk>, F: FnMut(&mut Stopped<'_>) -> Result<T>> Entries<'a, T, F> {
    fn new(request: &'a Request, address: u64, take: F) -> Self {
        let number = match request.entry {
            Entry::Auto => 0,
            Entry::Number(number) | Entry::Start(number) => number.max(1),
        };
        let is_start = matches!(request.entry, Entry::Start(_));
        let deadline = Instant::now() + request.limits.first_entry;
        let time = request.limits.time;
        let (taken, seen, wanted) = (None, 0, &AUTO[..]);
        let (threads, left, is_late) = (HashSet::new(), None, false);
        let (further, next) = (Vec::new(), None);
        let executions = request.executions;
        Self {
            address,
            take,
            taken,
            further,
            executions,
            seen,
            wanted,
            number,
            is_start,
            next,
            threads,
            left,
            retries: 0,
            deadline,
            stop: &request.stop,
            time,
            is_late,
        }
    }

    fn run(&mut self, traced: &mut Traced) -> Result<How> {
        loop {
            if self.stop.is_set() {
                return Err(Error::failed("the block was not captured").because("interrupted"));
            }
            let now = Instant::now();
            let tid = match traced.next(self.deadline.min(now + NOTICE)) {
                Event::Hit(tid) => tid,
                Event::TimedOut if Instant::now() < self.deadline => continue,
                Event::Ended => return Ok(How::Ended),
                Event::TimedOut if self.taken.is_some() => return Ok(How::Taken),
                // An entry that was asked for is not replaced by another.
                Event::TimedOut if self.seen > 0 && !self.is_late && self.number == 0 => {
                    (self.is_late, self.deadline) = (true, Instant::now() + NEXT_START);
                    continue;
                }
                Event::TimedOut => return Ok(How::TimedOut),
            };
            self.seen += 1;
            if self.seen == 1 {
                self.deadline = Instant::now() + self.time;
            }
            let from_outside = self.threads.insert(tid) || self.left == Some(tid);
            if self.is_due(tid) {
                let last = self.capture(traced, tid, from_outside)?;
                if last {
                    return Ok(How::Taken);
                }
                traced.unhalt(tid);
            }
            traced.pass(tid);
        }
    }

    fn is_due(&self, tid: i32) -> bool {
        match (self.left, self.number) {
            (Some(left), _) => left == tid,
            (None, _) if self.next.is_some_and(|next| self.seen < next) => false,
            (None, _) if self.next.is_some() => true,
            (None, 0) => self.is_late || self.wanted.first().is_some_and(|n| self.seen >= *n),
            (None, number) => self.seen >= number,
        }
    }

    /// Captures this entry; whether it is the last to be captured.
    fn capture(&mut self, traced: &mut Traced, tid: i32, from_outside: bool) -> Result<bool> {
        let first = self.seen;
        let from_outside = from_outside || (self.is_start && first == self.number);
        let mut stopped = Stopped::new(traced, tid, self.address, first, from_outside)?;
        stopped.counts = self.next.is_none() || !self.is_endless();
        let taken = (self.take)(&mut stopped)?;
        let walk = taken.as_ref();
        self.seen += walk.trips.saturating_sub(1);
        let has_exited = walk.end == End::Left;
        let is_late = self.is_late || self.number > 0 || self.retries >= RETRIES;
        if !is_late && !from_outside && is_cut_short(walk) {
            self.retries += 1;
            self.taken.get_or_insert(taken);
            return Ok(false);
        }
        if self.next.is_some() {
            return Ok(self.further(taken, tid, from_outside, has_exited));
        }
        self.taken = Some(taken);
        if self.number > 0 {
            return Ok(!(self.is_start && from_outside && has_exited && self.wants_further()));
        }
        let seen = self.seen;
        self.wanted = &self.wanted[self.wanted.partition_point(|n| *n <= seen)..];
        let mut is_last = self.wanted.is_empty() || self.is_late;
        // The first iterations of a long loop may be unlike the others.
        if is_last && !self.is_late && from_outside && !has_exited {
            (is_last, self.wanted) = (false, &AUTO[AUTO.len() - 1..]);
        }
        // In the middle of a loop, or in its first execution, which may be unlike the others:
        // capture the next start.
        let is_typical = from_outside && first > 1;
        self.left = (is_last && has_exited && !is_typical).then_some(tid);
        if self.left.is_some() {
            self.deadline = self.deadline.min(Instant::now() + NEXT_START);
        }
        if !is_last || self.left.is_some() {
            return Ok(false);
        }
        // Without a start the next one is unknown; of a long loop other iterations are as good.
        Ok(self.is_late || (has_exited && !from_outside) || !self.wants_further())
    }

    /// Begins to capture further executions, if any are wanted.
    fn wants_further(&mut self) -> bool {
        if self.executions < 2 {
            return false;
        }
        self.next = Some(spread(self.seen));
        self.deadline = self.deadline.min(Instant::now() + FURTHER);
        true
    }

    /// Whether the chosen capture did not reach the end of the loop.
    fn is_endless(&self) -> bool {
        self.taken.as_ref().is_some_and(|first| first.as_ref().end != End::Left)
    }

    /// Adds a capture after the chosen one if it is of a whole execution; else waits for the next
    /// start of the loop. Whether it is the last.
    fn further(&mut self, taken: T, tid: i32, from_outside: bool, has_exited: bool) -> bool {
        self.left = None;
        let is_endless = self.is_endless();
        if from_outside || is_endless {
            self.further.push(taken);
            self.next = Some(spread(self.seen));
        } else if has_exited {
            self.left = Some(tid);
        }
        let has_next = has_exited || is_endless;
        self.is_late || !has_next || self.further.len() + 1 >= self.executions
    }
}

/// Whether a call that few iterations have came too soon.
fn is_cut_short(walk: &Walk) -> bool {
    let is_soon = walk.before_call.is_some_and(|before| before.iterations < FEWEST);
    walk.end == End::Limit && is_soon && 2 * walk.calls < walk.sequence.len() as u64
}

/// The first entry for the next execution: distances grow, so that few executions span much of a
/// run.
fn spread(seen: u64) -> u64 {
    seen + seen / 2 + 1
}

/// Error of a command without a capture.
fn never(request: &Request, how: How, seen: u64, was_mapped: bool, exit: Option<Exit>) -> Error {
    let image = request.image.display();
    let limit = if seen == 0 { request.limits.first_entry } else { request.limits.time };
    let time = limit.as_secs_f64();
    let until = match (how, exit) {
        (How::TimedOut, _) => format!("in {time:.2} s"),
        (_, Some(Exit::Signal(signal))) => format!("before signal {signal} ended the command"),
        (_, Some(Exit::Status(status))) if status != 0 => {
            format!("before the command ended with status {status}")
        }
        _ => "before the command ended".to_owned(),
    };
    let error = Error::failed("the block was not captured");
    match (was_mapped, seen, request.entry) {
        (false, ..) => error
            .because(format!("{image} was not mapped {until}"))
            .hint("give the command that runs this very file"),
        (true, 1.., Entry::Number(wanted) | Entry::Start(wanted)) => error
            .because(format!("it was entered {seen} times {until}, not {wanted} times"))
            .hint(format!("ask for an entry up to {seen}")),
        _ => error
            .because(format!("it was never entered {until}"))
            .hint("choose arguments with which the program runs the block"),
    }
}
