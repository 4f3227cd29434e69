//! Runs the copies once with tracing: sets the run up, finds where it failed, and reads the results of a completed
//! one: pages, accesses, lines written, final state.

use super::run_setup::{FinalState, RunSetup, without_faults};
use super::trace::{self, Access};
use super::value_search::{Candidate, FailedRun, ValueSearch};
use super::{Failure, Why, explain};
use crate::harness::{Program, Shape, forms};
use crate::runner::{BLOCK_CODE, Segment, may_map};
use crate::sandbox::{Ended, layout as at};
use iced_x86::Mnemonic;
use isa::code::Block;
use std::collections::HashSet;
use tma::Result;

/// The reason where there is no room for the copies.
const TOO_LONG: &str = "the copies exceed the code area of the harness";

/// Most pages reused from a failed run: all are filled again for each run.
const MAX_REUSED: usize = 64;

/// Initial pages of a run.
enum Pages<'a> {
    /// Pages of the previous run.
    Previous,
    /// Pages of an earlier run that took the same path, as far as it went; none without one.
    Earlier(Option<&'a RunSetup>),
}

impl ValueSearch<'_> {
    /// Runs the copies once from `start` and records their memory accesses.
    pub(super) fn traced_run(
        &mut self,
        start: &Candidate,
    ) -> Result<std::result::Result<RunSetup, FailedRun>> {
        self.traced_run_after(start, self.earlier)
    }

    /// Like [`Self::traced_run`]; the pages of an `earlier` run with the same start are mapped at once.
    pub(super) fn traced_run_after(
        &mut self,
        start: &Candidate,
        earlier: Option<&RunSetup>,
    ) -> Result<std::result::Result<RunSetup, FailedRun>> {
        if self.keeps_pages()
            && let Some((ended, program)) = self.attempt(start, Pages::Previous)?
        {
            // With other pages than its own, a run shows nothing but where it faults.
            let faulted =
                !matches!(ended, Ended::Done | Ended::TooManyPages(_) | Ended::MapRefused(_));
            if faulted && self.mapped <= self.options.physical_pages.min(self.pages) {
                return Ok(Err(self.failed_run(start, ended, program)));
            }
            self.keep_program(start, program);
        }
        let Some((ended, program)) = self.attempt(start, Pages::Earlier(earlier))? else {
            return Ok(Err(self.note_failure(start, Failure::of_block(TOO_LONG), None)));
        };
        if ended != Ended::Done {
            return Ok(Err(self.failed_run(start, ended, program)));
        }
        self.faulted_in = None;
        let outcome = match self.completed_run(start, &program)? {
            Ok(setup) => Ok(setup),
            Err(failure) => Err(self.note_failure(start, failure, Some((&ended, &program)))),
        };
        self.keep_program(start, program);
        match outcome {
            Ok(setup) => self.with_pages_without_faults(start, setup).map(Ok),
            Err(failed) => Ok(Err(failed)),
        }
    }

    /// Repeats the run with the pages mapped that no fault asks for; returns `setup` where that is impossible.
    fn with_pages_without_faults(
        &mut self,
        start: &Candidate,
        setup: RunSetup,
    ) -> Result<RunSetup> {
        let worker = self.runner.worker()?;
        let (base, pages) = (worker.base(), setup.without_faults.pages.iter());
        let missing = pages.filter(|page| !setup.pages.contains(page) && may_map(**page, base));
        let all: Vec<u64> = setup.pages.iter().chain(missing).copied().collect();
        if all.len() == setup.pages.len() || all.len() > self.pages {
            return Ok(setup);
        }
        let wanted = RunSetup { pages: all, ..setup.clone() };
        let Some((ended, program)) = self.attempt(start, Pages::Earlier(Some(&wanted)))? else {
            return Ok(setup);
        };
        if ended == Ended::Done
            && let Ok(again) = self.completed_run(start, &program)?
        {
            self.keep_program(start, program);
            return Ok(again);
        }
        if let Some((_, program)) = self.attempt(start, Pages::Earlier(Some(&setup)))? {
            self.keep_program(start, program);
        }
        Ok(setup)
    }

    /// Notes how and where a run ended, for the next ones.
    fn failed_run(&mut self, start: &Candidate, ended: Ended, program: Program) -> FailedRun {
        let failure = explain(&ended, &program, self.options.pages_allowed());
        let failed = self.note_failure(start, failure, Some((&ended, &program)));
        let own = self.mapped <= self.options.physical_pages;
        self.faulted_in = (own && matches!(ended, Ended::Fault(_))).then_some(self.runner.started);
        self.keep_program(start, program);
        failed
    }

    /// Whether the pages of the previous run, which faulted, stay mapped: the next candidate differs in one value
    /// and mostly touches the same pages.
    fn keeps_pages(&mut self) -> bool {
        self.faulted_in == Some(self.runner.started)
    }

    /// One run, and its program; `None` if it does not fit.
    fn attempt(&mut self, start: &Candidate, pages: Pages<'_>) -> Result<Option<(Ended, Program)>> {
        let physical = self.options.physical_pages;
        let mut before = 0;
        match pages {
            Pages::Previous => {
                before = self.runner.pages().map_or(0, |pages| pages.len());
                // Each page has a physical page of its own, so that other pages do not affect its content.
                self.runner.prepare_on_same_pages(&start.values, MAX_REUSED, MAX_REUSED)?;
            }
            Pages::Earlier(earlier) => {
                self.runner.prepare(&start.values, physical, self.pages)?;
                let rip_area = self.runner.worker()?.rip_area();
                let begins_alike = |earlier: &&RunSetup| {
                    (&earlier.values, &earlier.reseeded) == (&start.values, &start.reseeded)
                        && earlier.copies <= self.copies
                        && earlier.pages.len() <= self.pages
                        && earlier.rip_area == rip_area
                };
                if let Some(earlier) = earlier.filter(begins_alike) {
                    self.runner.map_known(&earlier.pages)?;
                }
            }
        }
        if !self.load(start)? {
            return Ok(None);
        }
        let segment = Segment { entry: BLOCK_CODE, repeat: 1 };
        let (ended, _) = self.runner.run(&[segment], &[(0, 1)])?;
        let all = self.runner.pages().map_or(0, |pages| pages.len());
        self.mapped = all.saturating_sub(before);
        Ok(self.program.take().map(|(.., program)| (ended, program)))
    }

    /// Keeps the program that is in the worker for a run that differs in values only.
    fn keep_program(&mut self, start: &Candidate, program: Program) {
        self.program = Some((self.copies, start.reseeded.clone(), self.runner.started, program));
    }

    /// Writes the tracing code into the worker unless it is already there; `false` if it does not
    /// fit.
    pub(super) fn load(&mut self, start: &Candidate) -> Result<bool> {
        self.runner.worker()?;
        let now = self.runner.started;
        if let Some((copies, reseeded, worker, _)) = &self.program
            && (*copies, reseeded, *worker) == (self.copies, &start.reseeded, now)
        {
            return Ok(true);
        }
        let shape = Shape {
            block: self.block,
            required_state: self.required_state,
            copies: self.copies,
            lines: false,
            reseeded: &start.reseeded,
            taken: &[],
            start: BLOCK_CODE,
            rip_area: self.runner.worker()?.rip_area(),
        };
        let program = forms::trace(&shape);
        // A measurement needs room for a long and a short run.
        let long_and_short = self.block.bytes.len() * self.copies.div_ceil(2) * 3 + 0x1000;
        let needed = program.bytes.len().max(long_and_short);
        let fits = BLOCK_CODE + needed <= at::CODE + at::CODE_SIZE;
        if fits {
            self.runner.worker()?.write(program.start, &program.bytes);
            self.program = Some((self.copies, start.reseeded.clone(), now, program));
        }
        Ok(fits)
    }

    /// Notes a failure: the first one is reported, the one that got furthest is improved upon.
    fn note_failure(
        &mut self,
        start: &Candidate,
        failure: Failure,
        ran: Option<(&Ended, &Program)>,
    ) -> FailedRun {
        let fault = ran.and_then(|(ended, _)| match ended {
            Ended::Fault(f) | Ended::MapRefused(f) | Ended::TooManyPages(f) => Some(*f),
            _ => None,
        });
        let fewer_copies_may_help = ran
            .is_none_or(|(ended, _)| matches!(ended, Ended::TooManyPages(_)))
            || matches!(failure.reason, Why::TooManyLines(_));
        let position = failure.position();
        let touched = match (fault, position, ran) {
            (Some(fault), ..) if fault.trap == 14 => vec![(fault.cr2, 1)],
            (_, Some(position), Some((_, program))) => self.touched(program, position),
            _ => Vec::new(),
        };
        let may_be_misaligned = fault.is_none_or(|f| f.trap == 13);
        let failed = FailedRun {
            start: start.clone(),
            failure,
            fewer_copies_may_help,
            touched,
            may_be_misaligned,
        };
        if self.first_failure.is_none() {
            self.first_failure = Some(failed.clone());
        }
        if self.best_failure.as_ref().is_none_or(|best| position > best.failure.position()) {
            self.best_failure = Some(failed.clone());
        }
        failed
    }

    /// Addresses and sizes that an instruction of the last run accessed, as far as they were traced.
    pub(super) fn touched(
        &mut self,
        program: &Program,
        position: (usize, usize),
    ) -> Vec<(u64, u64)> {
        let Ok(worker) = self.runner.worker() else { return Vec::new() };
        let bytes = worker.read(at::TRACE, program.traced);
        let rip = worker.base() + worker.rip_area() as u64;
        trace::accesses_of(self.block, &program.slots, &bytes, position, rip)
    }

    /// The setup of a run that completed, or why it cannot be measured.
    fn completed_run(
        &mut self,
        start: &Candidate,
        program: &Program,
    ) -> Result<std::result::Result<RunSetup, Failure>> {
        let (options, copies) = (self.options, self.copies);
        let pages = self.runner.pages();
        let worker = self.runner.worker()?;
        let taken = worker.read(program.conditions, copies).iter().map(|b| *b != 0).collect();
        let bytes = worker.read(at::TRACE, program.traced);
        let (base, rip_area) = (worker.base(), worker.rip_area());
        let rip = base + rip_area as u64;
        let (accesses, mut complete) =
            trace::accesses(self.block, &program.slots, &bytes, copies, rip);
        let Some(pages) = pages else {
            self.runner.discard();
            return Ok(Err(Failure::of_block("it overwrote the harness")));
        };
        if let Some(failure) = harness_access(&accesses, base) {
            self.runner.discard();
            return Ok(Err(failure));
        }
        if let Some(failure) = split_lock(self.block, &accesses) {
            return Ok(Err(failure));
        }
        let without_faults = without_faults(self.block, &program.slots, &bytes, copies, rip);
        // A page that no traced access touches means that accesses are missing.
        let touched = |page: &u64| {
            accesses.iter().any(|a| a.touches(*page)) || without_faults.pages.contains(page)
        };
        complete &= pages.iter().all(touched);
        let mut lines =
            self.runner.changed_lines(&pages, start.values.memory, options.physical_pages);
        written_lines(&accesses, &pages, options.physical_pages, &mut lines);
        if lines.len() > at::LINES_MAX {
            return Ok(Err(Failure::of_block(Why::TooManyLines(lines.len()))));
        }
        let (values, reseeded) = (start.values.clone(), start.reseeded.clone());
        let end =
            FinalState { registers: self.runner.end_registers(), memory: self.runner.memory() };
        let setup = RunSetup {
            values,
            copies,
            pages,
            lines,
            taken,
            reseeded,
            accesses,
            complete,
            without_faults,
            end,
            rip_area,
        };
        Ok(Ok(setup))
    }
}

/// An access to the harness itself, or to an impossible address: the trace was overwritten.
fn harness_access(accesses: &[Access], base: u64) -> Option<Failure> {
    let end = base + at::SIZE as u64;
    let access = accesses.iter().find(|a| {
        let access_end = a.address.saturating_add(a.size.max(1));
        access_end > at::USER_TOP || (a.address < end && access_end > base)
    })?;
    Some(Failure {
        reason: "an address of the harness itself".into(),
        copy: Some(access.copy),
        instruction: Some(access.instruction),
        address: Some(access.address),
    })
}

/// A split lock, a locked access that crosses a cache line: Linux delays or kills the process.
fn split_lock(block: &Block, accesses: &[Access]) -> Option<Failure> {
    let access = accesses.iter().find(|a| {
        let inst = &block.instructions[a.instruction].decoded;
        let locked = inst.has_lock_prefix() || inst.mnemonic() == Mnemonic::Xchg;
        locked && a.crosses_line()
    })?;
    Some(Failure {
        reason: "a locked access across a cache line".into(),
        copy: Some(access.copy),
        instruction: Some(access.instruction),
        address: Some(access.address),
    })
}

/// Adds the lines that the trace shows written: data that an even number of copies writes and
/// restores has changed after an odd number.
fn written_lines(accesses: &[Access], pages: &[u64], physical: usize, lines: &mut Vec<u64>) {
    let page_of = |address: u64| address & !(at::PAGE as u64 - 1);
    let mut known: HashSet<u64> = lines.iter().copied().collect();
    for access in accesses.iter().filter(|a| a.writes && a.size > 0) {
        for line in access.lines().take(at::LINES_MAX + 1) {
            let address = 64 * line;
            let Some(index) = pages.iter().position(|p| *p == page_of(address)) else { continue };
            let first = pages[index % physical.clamp(1, at::PHYSICAL_MAX)] + address % 4096;
            if known.insert(first) {
                lines.push(first);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::RequiredState;
    use crate::runner::Runner;
    use crate::{Options, Values};
    use isa::code::{Block, parse_hex};

    /// A candidate after one that failed: its pages are there, but it fails as it does alone, and if it runs, only
    /// its own pages count.
    #[test]
    fn pages_of_a_failed_run_change_no_outcome() {
        // mov rcx,[rbx]; mov rdx,[rax]
        let block = Block::decode(&parse_hex("488b0b 488b10").unwrap()).unwrap();
        let (required_state, options) = (RequiredState::of(&block), Options::default());
        let start = |rbx: u64, rax: u64| {
            let mut values = Values::default();
            (values.registers[3], values.registers[0]) = (rbx, rax);
            Candidate { values, reseeded: Vec::new() }
        };
        let (first, second) = (start(0x10_0000, 0), start(0x20_0000, 8));
        let mut runner = Runner::new(Default::default(), None, false);
        let mut alone = ValueSearch::new(&mut runner, &block, &required_state, 4, &options);
        let expected = alone.traced_run(&second).unwrap().unwrap_err();
        assert_eq!(expected.failure.position(), Some((0, 1)));
        let mut search = ValueSearch::new(&mut runner, &block, &required_state, 4, &options);
        assert!(search.traced_run(&first).unwrap().is_err());
        assert_eq!(search.traced_run(&second).unwrap().unwrap_err(), expected);
        assert_eq!(search.runner.pages(), Some(vec![0x10_0000, 0x20_0000]));
        let setup = search.traced_run(&start(0x30_0000, 0x20_0000)).unwrap().unwrap();
        assert_eq!(setup.pages, [0x30_0000, 0x20_0000]);
        assert_eq!(search.runner.pages(), Some(setup.pages));
    }
}
