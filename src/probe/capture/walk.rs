//! Steps a stopped thread through iterations of a loop: contents of the accessed pages before the
//! access, and branches taken.

use super::operands::{Decoded, LONGEST};
use super::request::Limits;
use super::snapshot::{BeforeCall, Branch, End, Pages, Walk};
use crate::process::{Memory, PAGE, Registers, Traced, Vectors, registers, vectors};
use iced_x86::{FlowControl, InstructionInfoFactory};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Time limit of one step or called function.
const ONE_STEP: Duration = Duration::from_secs(1);

/// Most pages captured of a loop that was not followed to its end, including those near accessed
/// pages.
const NEARBY: usize = 512;
/// Factor on the time for stepping, to finish an iteration: trips are counted from the loop's start
/// on.
const FINISHING: u32 = 4;
/// Most cache lines counted: several times the largest first-level caches.
const MOST_LINES: usize = 1 << 14;
/// Bytes of a cache line.
const LINE: usize = 64;

/// A walk in progress.
pub struct Walker<'a> {
    traced: &'a mut Traced,
    tid: i32,
    memory: &'a Memory,
    /// The region in the process.
    region: Vec<Range<u64>>,
    /// Difference of addresses in the process and in the file.
    bias: u64,
    limits: Limits,
    factory: InstructionInfoFactory,
    code: HashMap<u64, Option<Decoded>>,
    walk: Walk,
    pages: Pages,
    missing: BTreeSet<u64>,
    lines: HashSet<u64>,
    known: HashMap<Vec<Branch>, u32>,
    path: Vec<Branch>,
}

impl<'a> Walker<'a> {
    /// A walk of thread `tid` in `region` (p_vaddr).
    pub fn new(
        traced: &'a mut Traced,
        tid: i32,
        memory: &'a Memory,
        region: &[Range<u64>],
        bias: u64,
        limits: Limits,
    ) -> Self {
        let moved = |r: &Range<u64>| r.start.wrapping_add(bias)..r.end.wrapping_add(bias);
        Self {
            traced,
            tid,
            memory,
            region: region.iter().map(moved).collect(),
            bias,
            limits,
            factory: InstructionInfoFactory::new(),
            code: HashMap::new(),
            walk: Walk::default(),
            pages: Pages::default(),
            missing: BTreeSet::new(),
            lines: HashSet::new(),
            known: HashMap::new(),
            path: Vec::new(),
        }
    }

    /// Walks until the thread leaves the region or a limit is reached; beyond it trips are counted
    /// if `counts`.
    pub fn walk(mut self, counts: bool) -> (Walk, Pages) {
        self.traced.disarm(self.tid);
        let begin = registers(self.tid);
        self.walk.end = self.iterations().unwrap_or(End::Interrupted);
        if !self.path.is_empty() || self.walk.end == End::Left {
            self.end_iteration();
        }
        if let (End::Limit, Ok(begin)) = (self.walk.end, begin) {
            let now = registers(self.tid).ok().filter(|now| now.pointer == begin.pointer);
            self.walk.followed_to = now.map(|now| super::snapshot::Registers(now.general));
            self.touch_nearby();
            if counts {
                self.count(&begin);
            }
        }
        let last = registers(self.tid).ok().filter(|_| self.walk.end == End::Left);
        self.walk.left_with = last.map(|r| super::snapshot::Registers(r.general));
        self.walk.lines = Some(self.lines.len() as u64);
        let mut sets = [0; PAGE / LINE];
        self.lines.iter().for_each(|line| sets[*line as usize % PAGE / LINE] += 1);
        self.walk.same_set = sets.into_iter().max();
        self.walk.missing = self.missing.into_iter().collect();
        (self.walk, self.pages)
    }

    /// Steps through iterations; `None` if a step did not complete.
    fn iterations(&mut self) -> Option<End> {
        let begin = Instant::now();
        let mut now = registers(self.tid).ok()?;
        let head = now.pointer;
        let mut at_head = now.general;
        self.walk.trips = 1;
        loop {
            let (spent, most) = (begin.elapsed(), self.limits.stepping);
            let is_over = self.walk.steps >= self.limits.steps || spent > most;
            if is_over && (now.pointer == head || spent > most * FINISHING) {
                return Some(End::Limit);
            }
            let decoded = self.decoded(now.pointer)?;
            if decoded.goes_elsewhere() && self.walk.before_call.is_none() {
                let (iterations, registers) = (self.walk.sequence.len() as u64, at_head);
                let registers = super::snapshot::Registers(registers);
                self.walk.before_call = Some(BeforeCall { iterations, registers });
            }
            self.touch(&decoded, &now);
            let next = self.step(&decoded, &now)?;
            self.branch(&decoded, next.pointer);
            now = next;
            if !self.region.iter().any(|range| range.contains(&now.pointer)) {
                return Some(End::Left);
            }
            if now.pointer == head {
                self.walk.trips += 1;
                at_head = now.general;
                self.end_iteration();
                if self.walk.trips > self.limits.iterations {
                    return Some(End::Limit);
                }
            }
        }
    }

    fn decoded(&mut self, address: u64) -> Option<Decoded> {
        let (memory, factory) = (self.memory, &mut self.factory);
        let decode = || Decoded::new(&memory.read(address, LONGEST), address, factory);
        self.code.entry(address).or_insert_with(decode).clone()
    }

    /// Reads the pages that an instruction accesses, unless already read.
    fn touch(&mut self, decoded: &Decoded, now: &Registers) {
        let gathered: Option<Vectors> =
            decoded.is_gather().then(|| vectors(self.tid).ok()).flatten();
        for range in decoded.accesses(now, gathered.as_ref()) {
            let lines = (range.start & !(LINE as u64 - 1)..range.end).step_by(LINE);
            if self.walk.before_call.is_none() {
                let room = MOST_LINES - self.lines.len();
                self.lines.extend(lines.take(room));
            }
            let first = range.start & !(PAGE as u64 - 1);
            let all = (first..range.end).step_by(PAGE).take(self.limits.pages);
            for page in all {
                if self.pages.0.contains_key(&page) || self.missing.contains(&page) {
                    continue;
                }
                let room = self.pages.0.len() < self.limits.pages;
                match self.memory.page(page).filter(|_| room) {
                    Some(content) => drop(self.pages.0.insert(page, content)),
                    // Masked-out lanes may have any address.
                    None if decoded.is_gather() => {}
                    None if self.missing.len() < self.limits.pages => {
                        self.missing.insert(page);
                    }
                    None => {}
                }
            }
        }
    }

    /// Reads the pages around accessed ones, nearest first: the rest of a long loop usually
    /// accesses them, and they are still as at the entry.
    fn touch_nearby(&mut self) {
        let walked: Vec<u64> = self.pages.0.keys().copied().collect();
        for distance in 1..=NEARBY as u64 {
            for page in &walked {
                let away = distance * PAGE as u64;
                for near in [page.checked_add(away), page.checked_sub(away)].into_iter().flatten() {
                    if self.pages.0.len() >= NEARBY.min(self.limits.pages) {
                        return;
                    }
                    if !self.pages.0.contains_key(&near)
                        && let Some(content) = self.memory.page(near)
                    {
                        self.pages.0.insert(near, content);
                        self.walk.nearby.push(near);
                    }
                }
            }
        }
    }

    /// Executes one instruction: a repeated one to its end, a call until it returns.
    fn step(&mut self, decoded: &Decoded, now: &Registers) -> Option<Registers> {
        self.walk.steps += 1;
        let after = decoded.instruction.next_ip();
        if decoded.repeats() {
            if !self.run_to([Some(after), None, None, None]) {
                self.finish(|r| r.pointer == after)?;
            }
            return registers(self.tid).ok();
        }
        let mut next = self.one()?;
        if decoded.is_call() {
            self.walk.calls += 1;
            // At the caller's stack depth, not that of a recursive call.
            let returned = |r: &Registers| r.pointer == after && r.general[4] >= now.general[4];
            while !returned(&next) {
                if !self.run_to([Some(after), None, None, None]) {
                    self.finish(returned)?;
                }
                next = registers(self.tid).ok()?;
                if !returned(&next) {
                    next = self.one()?;
                }
            }
        }
        Some(next)
    }

    fn run_to(&mut self, addresses: [Option<u64>; 4]) -> bool {
        let there = self.traced.run_to(self.tid, addresses, ONE_STEP);
        self.traced.disarm(self.tid);
        there
    }

    /// Counts the remaining trips without stepping: breakpoints at the loop's start (debug
    /// register) and exits (the other ones, or `int3` if there are more).
    fn count(&mut self, begin: &Registers) {
        let (head, stack) = (begin.pointer, begin.general[4]);
        let Ok(now) = registers(self.tid) else { return };
        let Some(exits) = self.exits().filter(|_| now.pointer == head) else { return };
        let mut stops = [Some(head), None, None, None];
        if exits.len() < stops.len() {
            stops[1..].iter_mut().zip(&exits).for_each(|(stop, exit)| *stop = Some(*exit));
        } else if !self.traced.plant(self.tid, &exits) {
            return;
        }
        let start = Instant::now();
        while start.elapsed() < self.limits.stepping {
            let there = self.traced.run_to(self.tid, stops, ONE_STEP);
            match registers(self.tid) {
                Ok(now) if !there && !exits.contains(&now.pointer) => break,
                // A recursive call has another stack pointer. If it exits by an `int3`, the
                // instruction under it is executed before the next stop.
                Ok(now) if now.general[4] != stack && !there => {
                    self.traced.disarm(self.tid);
                    if self.one().is_none() || !self.traced.plant(self.tid, &exits) {
                        break;
                    }
                }
                Ok(now) if now.general[4] != stack => {}
                Ok(now) if now.pointer == head => self.walk.trips += 1,
                Ok(_) => {
                    self.walk.end = End::Left;
                    break;
                }
                Err(_) => break,
            }
        }
        self.traced.disarm(self.tid);
    }

    /// Targets outside of the region, if its instructions give them all.
    fn exits(&mut self) -> Option<Vec<u64>> {
        let mut found = BTreeSet::new();
        for Range { start, end } in self.region.clone() {
            let mut at = start;
            while at < end {
                let decoded = self.decoded(at)?;
                at = decoded.instruction.next_ip();
                found.extend(decoded.continues_at()?);
            }
        }
        found.retain(|at| !self.region.iter().any(|range| range.contains(at)));
        Some(found.into_iter().collect())
    }

    fn one(&mut self) -> Option<Registers> {
        if !self.traced.step(self.tid, ONE_STEP) {
            return None;
        }
        registers(self.tid).ok()
    }

    /// Steps until `done`; `None` after the time limit.
    fn finish(&mut self, done: impl Fn(&Registers) -> bool) -> Option<()> {
        let begin = Instant::now();
        while begin.elapsed() < self.limits.stepping {
            if done(&registers(self.tid).ok()?) {
                return Some(());
            }
            self.one()?;
        }
        None
    }

    fn branch(&mut self, decoded: &Decoded, to: u64) {
        if !decoded.is_branch() {
            return;
        }
        let instruction = &decoded.instruction;
        let conditional = instruction.flow_control() == FlowControl::ConditionalBranch;
        let taken = !conditional || to != instruction.next_ip();
        let at = instruction.ip().wrapping_sub(self.bias);
        self.path.push(Branch { at, to: to.wrapping_sub(self.bias), taken });
    }

    fn end_iteration(&mut self) {
        let path = std::mem::take(&mut self.path);
        let number = match self.known.get(&path) {
            Some(number) => *number,
            None => {
                let number = self.walk.paths.len() as u32;
                self.walk.paths.push(path.clone());
                self.known.insert(path, number);
                number
            }
        };
        self.walk.sequence.push(number);
    }
}
