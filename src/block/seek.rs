//! The search for initial values: one traced run after the other, each from what the last ones
//! said.

use super::Options;
use super::discover::{End, Found};
use super::engine::{BLOCK_CODE, Engine, Segment};
use super::failure::{Failure, ILLEGAL, explain};
use super::program::{self, Needs, Program, Shape};
use super::sandbox::Ended;
use super::sandbox::layout::{self as at};
use super::search::{NUDGE, calmer, influences, proposals, solved};
use super::trace::{self, Access};
use super::values::Values;
use crate::Result;
use crate::code::{Block, Inst};
use iced_x86::{Mnemonic, Register};

/// What a search for values may cost, without and with registers set again: in runs, those with
/// many pages counted more. Not in time, since the same block must find the same values each time.
const BUDGET: usize = 400;
/// What the search for fewer pages may cost.
const CALMING: usize = 120;
/// Copies that are worth measuring: fewer bias dense blocks.
const ENOUGH: usize = 32;

/// Initial values and registers set again before every copy.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Start {
    values: Values,
    reseeded: Vec<u8>,
}

/// An attempt that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Tried {
    start: Start,
    failure: Failure,
    /// Whether fewer copies could help.
    fewer: bool,
    /// What the failing instruction touched, with sizes.
    touched: Vec<(u64, u64)>,
    /// Whether its alignment may be what is wrong.
    alignment: bool,
}

/// One block's search.
pub struct Seeker<'a> {
    engine: &'a mut Engine,
    block: &'a Block,
    needs: &'a Needs,
    options: &'a Options,
    copies: usize,
    /// The attempt that got furthest.
    best: Option<Tried>,
    /// The first failure: what there is to say in the end.
    first: Option<Tried>,
    /// The last trace's code, with what it was made for and in which worker it lies.
    program: Option<(usize, Vec<u8>, u32, Program)>,
}

impl<'a> Seeker<'a> {
    /// Nothing tried yet.
    pub fn new(
        engine: &'a mut Engine,
        block: &'a Block,
        needs: &'a Needs,
        copies: usize,
        options: &'a Options,
    ) -> Self {
        Self { engine, block, needs, options, copies, best: None, first: None, program: None }
    }

    /// The whole search.
    pub fn run(mut self) -> Result<std::result::Result<Found, Failure>> {
        let found = match self.seek()? {
            Some(found) => Some(self.calmed(found)?),
            None => None,
        };
        let first = self.first;
        Ok(found.ok_or_else(|| first.map_or_else(Failure::nothing, |tried| tried.failure)))
    }

    fn seek(&mut self) -> Result<Option<Found>> {
        let all = self.options.candidates();
        let search = self.may_search();
        if let Some(found) = self.sets(&all, &[], ENOUGH)? {
            return Ok(Some(found));
        }
        if self.is_hopeless() {
            return Ok(None);
        }
        if search && let Some(found) = self.climb(false)? {
            return Ok(Some(found));
        }
        if search && let Some(found) = self.fewer_copies()? {
            return Ok(Some(found));
        }
        if !self.options.reseed {
            return self.sets(&all, &[], 4);
        }
        let mut found = self.climb(true)?;
        if found.is_none() && self.best != self.first {
            self.best.clone_from(&self.first);
            found = self.climb(true)?;
        }
        let clobbered = clobbered_addresses(self.block);
        if found.is_none() && !clobbered.is_empty() {
            found = self.sets(&all, &clobbered, ENOUGH)?;
        }
        match found {
            Some(found) => Ok(Some(self.pruned(found)?)),
            None => self.sets(&all, &[], 4),
        }
    }

    /// Whether other values may be looked for than the sets.
    fn may_search(&self) -> bool {
        let options = self.options;
        options.values.is_none() && options.value_sets > 1 && options.mapping
    }

    /// With what the user has fixed.
    fn fixed(&self, mut values: Values) -> Values {
        for (place, value) in &self.options.init {
            place.set(&mut values, *value);
        }
        values
    }

    /// Whether the processor lacks an instruction: no value helps.
    fn is_hopeless(&self) -> bool {
        self.first.as_ref().is_some_and(|t| t.failure.reason.starts_with(ILLEGAL))
    }

    /// One set of values after the other, each with fewer copies if there are too many pages, but
    /// not with fewer than `least`.
    fn sets(&mut self, all: &[Values], reseeded: &[u8], least: usize) -> Result<Option<Found>> {
        let whole = self.copies;
        for values in all {
            self.copies = whole;
            let start = Start { values: values.clone(), reseeded: reseeded.to_vec() };
            loop {
                match self.attempt(&start)? {
                    Ok(found) => return Ok(Some(found)),
                    Err(_) if self.is_hopeless() => return Ok(None),
                    Err(tried) if tried.fewer && self.copies >= 2 * least => self.copies /= 2,
                    Err(_) => break,
                }
            }
        }
        self.copies = whole;
        Ok(None)
    }

    /// From the attempt that got furthest, changes one thing after the other that reaches the
    /// failing instruction, and keeps what gets further.
    fn climb(&mut self, reseed: bool) -> Result<Option<Found>> {
        let Some(mut here) = self.best.clone() else { return Ok(None) };
        let mut budget = BUDGET;
        'climb: while let Some(place) = here.failure.place() {
            for step in self.steps(&here, place, reseed, &mut budget)? {
                if budget == 0 {
                    break 'climb;
                }
                let step = Start { values: self.fixed(step.values), ..step };
                let tried = self.attempt(&step)?;
                budget = budget.saturating_sub(self.cost());
                match tried {
                    Ok(found) => return Ok(Some(found)),
                    Err(tried) if tried.failure.place() > Some(place) => {
                        here = tried;
                        continue 'climb;
                    }
                    Err(_) => {}
                }
            }
            break;
        }
        Ok(None)
    }

    /// What to try from `here`.
    fn steps(
        &mut self,
        here: &Tried,
        place: (usize, usize),
        reseed: bool,
        budget: &mut usize,
    ) -> Result<Vec<Start>> {
        let influences = influences(self.block, place.1);
        let mut steps = Vec::new();
        if reseed && place.0 > 0 {
            for register in &influences.registers {
                let mut start = here.start.clone();
                if writes(self.block, *register) && !start.reseeded.contains(register) {
                    start.reseeded.push(*register);
                    steps.push(start);
                }
            }
        }
        let aligned = here.alignment;
        let values = proposals(&here.start.values, &influences, &here.touched, aligned);
        steps.extend(values.into_iter().map(|values| Start { values, ..here.start.clone() }));
        // Which way does the failing address go when a register is moved a little?
        let Some(before) = here.touched.first().map(|t| t.0) else { return Ok(steps) };
        let mut by_slope = Vec::new();
        for register in influences.registers.iter().take(6) {
            let number = usize::from(*register);
            let mut start = here.start.clone();
            start.values.registers[number] = start.values.registers[number].wrapping_add(NUDGE);
            let moved = self.attempt(&start)?;
            *budget = budget.saturating_sub(self.cost());
            let Err(moved) = moved else { return Ok(vec![start]) };
            let same = moved.failure.place() == Some(place);
            let Some(after) = moved.touched.first().map(|t| t.0).filter(|_| same) else { continue };
            for value in solved(here.start.values.registers[number], before, after) {
                let mut start = here.start.clone();
                start.values.registers[number] = value;
                by_slope.push(start);
            }
        }
        by_slope.extend(steps);
        Ok(by_slope)
    }

    /// What the last run cost: every page it mapped made it start again.
    fn cost(&self) -> usize {
        1 + self.engine.pages().map_or(0, |pages| pages.len()) / 8
    }

    /// As many copies as ran, if those are enough.
    fn fewer_copies(&mut self) -> Result<Option<Found>> {
        let Some(best) = self.best.clone() else { return Ok(None) };
        let whole = self.copies;
        self.copies = best.failure.copy.unwrap_or(0) & !1;
        if self.copies >= ENOUGH.min(whole / 2).max(2)
            && let Ok(found) = self.attempt(&best.start)?
        {
            return Ok(Some(found));
        }
        self.copies = whole;
        Ok(None)
    }

    /// Values with which the block touches no more lines than can lie in the L1 data cache, if
    /// such are found.
    fn calmed(&mut self, mut found: Found) -> Result<Found> {
        let whole = self.copies;
        let limit = self.options.physical_pages;
        if !self.may_search() || found.is_calm(limit) {
            return Ok(found);
        }
        let mut budget = CALMING;
        'better: while !found.is_calm(limit) {
            let others = if budget == CALMING { self.options.candidates() } else { Vec::new() };
            for values in others.into_iter().chain(calmer(self.block, &found.values)) {
                if budget == 0 {
                    break 'better;
                }
                let values = self.fixed(values);
                let start = Start { values, reseeded: found.reseeded.clone() };
                let tried = self.attempt(&start)?;
                budget = budget.saturating_sub(self.cost());
                if let Ok(other) = tried
                    && other.unrest() < found.unrest()
                {
                    found = other;
                    continue 'better;
                }
            }
            break;
        }
        self.copies = whole.min(found.copies);
        let start = Start { values: found.values.clone(), reseeded: found.reseeded.clone() };
        Ok(self.attempt(&start)?.unwrap_or(found))
    }

    /// Leaves out every register that need not be set again after all.
    fn pruned(&mut self, mut found: Found) -> Result<Found> {
        self.copies = found.copies;
        for register in found.reseeded.clone() {
            let reseeded = found.reseeded.iter().copied().filter(|r| *r != register).collect();
            let start = Start { values: found.values.clone(), reseeded };
            if let Ok(fewer) = self.attempt(&start)? {
                found = fewer;
            }
        }
        // The worker must hold the pages of what was found.
        let start = Start { values: found.values.clone(), reseeded: found.reseeded.clone() };
        Ok(self.attempt(&start)?.unwrap_or(found))
    }

    /// One traced run.
    fn attempt(&mut self, start: &Start) -> Result<std::result::Result<Found, Tried>> {
        let options = self.options;
        self.engine.prepare(&start.values, options.physical_pages, options.pages_allowed())?;
        if !self.load(start)? {
            let failure = Failure::of_all("the copies do not fit the harness");
            return Ok(Err(self.tried(start, failure, None)));
        }
        let entry = BLOCK_CODE;
        let (ended, _) = self.engine.run(&[Segment { entry, repeat: 1 }], &[(0, 1)])?;
        let Some((.., program)) = self.program.take() else {
            return Ok(Err(self.tried(start, Failure::of_all("nothing ran"), None)));
        };
        let result = if ended == Ended::Done {
            self.found(start, &program)?
        } else {
            Err(explain(&ended, &program, options.pages_allowed()))
        };
        let in_worker = self.engine.started;
        let tried = result.map_err(|failure| self.tried(start, failure, Some((&ended, &program))));
        self.program = Some((self.copies, start.reseeded.clone(), in_worker, program));
        Ok(tried)
    }

    /// Puts the trace's code into the worker unless it is there; `false` if it does not fit.
    fn load(&mut self, start: &Start) -> Result<bool> {
        self.engine.worker()?;
        let now = self.engine.started;
        if let Some((copies, reseeded, worker, _)) = &self.program
            && (*copies, reseeded, *worker) == (self.copies, &start.reseeded, now)
        {
            return Ok(true);
        }
        let shape = Shape {
            block: self.block,
            needs: self.needs,
            copies: self.copies,
            lines: false,
            reseeded: &start.reseeded,
            taken: &[],
            start: BLOCK_CODE,
            rip_area: self.engine.worker()?.rip_area(),
        };
        let program = program::trace(&shape);
        // A measured run needs room for a long and a short one.
        let long_and_short = self.block.bytes.len() * self.copies.div_ceil(2) * 3 + 0x1000;
        let needed = program.bytes.len().max(long_and_short);
        let fits = BLOCK_CODE + needed <= at::CODE + at::CODE_SIZE;
        if fits {
            self.engine.worker()?.write(program.start, &program.bytes);
            self.program = Some((self.copies, start.reseeded.clone(), now, program));
        }
        Ok(fits)
    }

    /// Remembers a failure.
    fn tried(&mut self, start: &Start, failure: Failure, ran: Option<(&Ended, &Program)>) -> Tried {
        let fault = ran.and_then(|(ended, _)| match ended {
            Ended::Fault(f) | Ended::MapRefused(f) | Ended::TooManyPages(f) => Some(*f),
            _ => None,
        });
        let fewer = ran.is_none_or(|(ended, _)| matches!(ended, Ended::TooManyPages(_)))
            || failure.reason.starts_with(MANY_LINES);
        let place = failure.place();
        let touched = match (fault, place, ran) {
            (Some(fault), ..) if fault.trap == 14 => vec![(fault.cr2, 1)],
            (_, Some(place), Some((_, program))) => self.touched(program, place),
            _ => Vec::new(),
        };
        let alignment = fault.is_none_or(|f| f.trap == 13);
        let tried = Tried { start: start.clone(), failure, fewer, touched, alignment };
        if self.first.is_none() {
            self.first = Some(tried.clone());
        }
        if self.best.as_ref().is_none_or(|best| place > best.failure.place()) {
            self.best = Some(tried.clone());
        }
        tried
    }

    /// What an instruction of the last run touched, as far as that was stored.
    fn touched(&mut self, program: &Program, place: (usize, usize)) -> Vec<(u64, u64)> {
        let Ok(worker) = self.engine.worker() else { return Vec::new() };
        let bytes = worker.read(at::TRACE, program.traced);
        let rip = worker.base() + worker.rip_area() as u64;
        trace::accesses_of(self.block, &program.slots, &bytes, place, rip)
    }

    /// Everything about a run that came to its end.
    fn found(
        &mut self,
        start: &Start,
        program: &Program,
    ) -> Result<std::result::Result<Found, Failure>> {
        let (options, copies) = (self.options, self.copies);
        let pages = self.engine.pages();
        let worker = self.engine.worker()?;
        let taken = worker.read(program.conditions, copies).iter().map(|b| *b != 0).collect();
        let bytes = worker.read(at::TRACE, program.traced);
        let (base, rip_area) = (worker.base(), worker.rip_area());
        let rip = base + rip_area as u64;
        let (accesses, mut complete) =
            trace::accesses(self.block, &program.slots, &bytes, copies, rip);
        let Some(pages) = pages else {
            self.engine.discard();
            return Ok(Err(Failure::of_all("it overwrote the harness")));
        };
        if let Some(failure) = foreign(&accesses, base) {
            self.engine.discard();
            return Ok(Err(failure));
        }
        if let Some(failure) = split_lock(self.block, &accesses) {
            return Ok(Err(failure));
        }
        // A page that no access of the trace explains means that there are others.
        complete &= pages.iter().all(|page| accesses.iter().any(|a| a.touches(*page)));
        let mut lines =
            self.engine.changed_lines(&pages, start.values.memory, options.physical_pages);
        written_lines(&accesses, &pages, options.physical_pages, &mut lines);
        if lines.len() > at::LINES_MAX {
            return Ok(Err(Failure::of_all(format!("{MANY_LINES}{} cache lines", lines.len()))));
        }
        let (values, reseeded) = (start.values.clone(), start.reseeded.clone());
        let end = End { registers: self.engine.end_registers(), memory: self.engine.memory() };
        let found = Found {
            values,
            copies,
            pages,
            lines,
            taken,
            reseeded,
            accesses,
            complete,
            end,
            rip_area,
        };
        Ok(Ok(found))
    }
}

/// Start of the reason when a block writes too much to restore it.
const MANY_LINES: &str = "it writes ";

/// An access to the harness itself, or one that cannot be: the trace was overwritten.
fn foreign(accesses: &[Access], base: u64) -> Option<Failure> {
    let end = base + at::SIZE as u64;
    let access = accesses.iter().find(|a| {
        let behind = a.address.saturating_add(a.size.max(1));
        behind > at::USER_TOP || (a.address < end && behind > base)
    })?;
    Some(Failure {
        reason: "an address of the harness itself".to_owned(),
        copy: Some(access.copy),
        instruction: Some(access.instruction),
        address: Some(access.address),
    })
}

/// A locked access that crosses a line: kernels delay or kill those.
fn split_lock(block: &Block, accesses: &[Access]) -> Option<Failure> {
    let access = accesses.iter().find(|a| {
        let inst = &block.instructions[a.instruction].decoded;
        let locked = inst.has_lock_prefix() || inst.mnemonic() == Mnemonic::Xchg;
        locked && a.crosses_line()
    })?;
    Some(Failure {
        reason: "a locked access across a cache line".to_owned(),
        copy: Some(access.copy),
        instruction: Some(access.instruction),
        address: Some(access.address),
    })
}

/// Adds the lines that the trace says are written: what was written and put back by an even
/// number of copies is found changed after an odd one.
fn written_lines(accesses: &[Access], pages: &[u64], physical: usize, lines: &mut Vec<u64>) {
    let page_of = |address: u64| address & !(at::PAGE as u64 - 1);
    for access in accesses.iter().filter(|a| a.writes && a.size > 0) {
        for line in access.lines().take(at::LINES_MAX + 1) {
            let address = 64 * line;
            let Some(index) = pages.iter().position(|p| *p == page_of(address)) else { continue };
            let first = pages[index % physical.clamp(1, at::PHYSICAL_MAX)] + address % 4096;
            if !lines.contains(&first) {
                lines.push(first);
            }
        }
    }
}

fn writes(block: &Block, number: u8) -> bool {
    block.instructions.iter().flat_map(|i| &i.registers).any(|used| {
        let full = used.register().full_register();
        Inst::writes(used.access()) && full.is_gpr64() && full.number() == usize::from(number)
    })
}

/// Address registers whose initial value the block uses and then overwrites.
fn clobbered_addresses(block: &Block) -> Vec<u8> {
    let inputs = block.inputs();
    let mut found = Vec::new();
    for memory in block.instructions.iter().flat_map(|i| &i.memory) {
        for register in [memory.base(), memory.index()].map(Register::full_register) {
            let number = register.number() as u8;
            if register.is_gpr64()
                && inputs.contains(&register)
                && !found.contains(&number)
                && writes(block, number)
            {
                found.push(number);
            }
        }
    }
    found
}
