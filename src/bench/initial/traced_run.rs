//! One traced run of the copies: setting it up, running it, reading its result.

use super::failure::{Failure, TOO_MANY_LINES, explain};
use super::trace::{self, Access};
use super::value_search::{Candidate, FailedRun, ValueSearch};
use crate::harness::forms;
use crate::harness::program::{Program, Shape};
use crate::initial::run_setup::{FinalState, RunSetup};
use crate::runner::{BLOCK_CODE, Segment};
use crate::sandbox::{Ended, layout as at};
use iced_x86::Mnemonic;
use isa::code::Block;
use std::collections::HashSet;
use tma::Result;

impl ValueSearch<'_> {
    /// Runs the copies once from `start` and records their memory accesses.
    pub(super) fn traced_run(
        &mut self,
        start: &Candidate,
    ) -> Result<std::result::Result<RunSetup, FailedRun>> {
        let options = self.options;
        self.runner.prepare(&start.values, options.physical_pages, self.pages)?;
        if !self.load(start)? {
            let failure = Failure::of_block("the copies exceed the code area of the harness");
            return Ok(Err(self.note_failure(start, failure, None)));
        }
        let entry = BLOCK_CODE;
        let (ended, _) = self.runner.run(&[Segment { entry, repeat: 1 }], &[(0, 1)])?;
        let Some((.., program)) = self.program.take() else {
            return Ok(Err(self.note_failure(start, Failure::of_block("nothing ran"), None)));
        };
        let result = if ended == Ended::Done {
            self.completed_run(start, &program)?
        } else {
            Err(explain(&ended, &program, options.pages_allowed()))
        };
        let in_worker = self.runner.started;
        let ran = Some((&ended, &program));
        let outcome = result.map_err(|failure| self.note_failure(start, failure, ran));
        self.program = Some((self.copies, start.reseeded.clone(), in_worker, program));
        Ok(outcome)
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
    pub(super) fn note_failure(
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
            || failure.reason.starts_with(TOO_MANY_LINES);
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

    /// The setup of a run that completed, or why it cannot be measured all the same.
    pub(super) fn completed_run(
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
        // A page that no traced access touches means that accesses are missing.
        complete &= pages.iter().all(|page| accesses.iter().any(|a| a.touches(*page)));
        let mut lines =
            self.runner.changed_lines(&pages, start.values.memory, options.physical_pages);
        written_lines(&accesses, &pages, options.physical_pages, &mut lines);
        if lines.len() > at::LINES_MAX {
            let reason = format!("{TOO_MANY_LINES}{} cache lines", lines.len());
            return Ok(Err(Failure::of_block(reason)));
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
        reason: "an address of the harness itself".to_owned(),
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
        reason: "a locked access across a cache line".to_owned(),
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
