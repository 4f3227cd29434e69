//! One traced run: what it takes to make it, and everything that it tells.

use super::failure::{Failure, explain};
use super::seek::{Seeker, Start, Tried};
use super::trace::{self, Access};
use crate::harness::forms;
use crate::harness::program::{Program, Shape};
use crate::initial::run_setup::{End, Found};
use crate::runner::{BLOCK_CODE, Segment};
use crate::sandbox::{Ended, layout as at};
use iced_x86::Mnemonic;
use isa::code::Block;
use std::collections::HashSet;
use tma::Result;

impl Seeker<'_> {
    /// One traced run.
    pub(super) fn attempt(&mut self, start: &Start) -> Result<std::result::Result<Found, Tried>> {
        let options = self.options;
        self.runner.prepare(&start.values, options.physical_pages, self.pages)?;
        if !self.load(start)? {
            let failure = Failure::of_all("the copies do not fit the harness");
            return Ok(Err(self.tried(start, failure, None)));
        }
        let entry = BLOCK_CODE;
        let (ended, _) = self.runner.run(&[Segment { entry, repeat: 1 }], &[(0, 1)])?;
        let Some((.., program)) = self.program.take() else {
            return Ok(Err(self.tried(start, Failure::of_all("nothing ran"), None)));
        };
        let result = if ended == Ended::Done {
            self.found(start, &program)?
        } else {
            Err(explain(&ended, &program, options.pages_allowed()))
        };
        let in_worker = self.runner.started;
        let tried = result.map_err(|failure| self.tried(start, failure, Some((&ended, &program))));
        self.program = Some((self.copies, start.reseeded.clone(), in_worker, program));
        Ok(tried)
    }

    /// Puts the trace's code into the worker unless it is there; `false` if it does not fit.
    pub(super) fn load(&mut self, start: &Start) -> Result<bool> {
        self.runner.worker()?;
        let now = self.runner.started;
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
            rip_area: self.runner.worker()?.rip_area(),
        };
        let program = forms::trace(&shape);
        // A measured run needs room for a long and a short one.
        let long_and_short = self.block.bytes.len() * self.copies.div_ceil(2) * 3 + 0x1000;
        let needed = program.bytes.len().max(long_and_short);
        let fits = BLOCK_CODE + needed <= at::CODE + at::CODE_SIZE;
        if fits {
            self.runner.worker()?.write(program.start, &program.bytes);
            self.program = Some((self.copies, start.reseeded.clone(), now, program));
        }
        Ok(fits)
    }

    /// Remembers a failure.
    pub(super) fn tried(
        &mut self,
        start: &Start,
        failure: Failure,
        ran: Option<(&Ended, &Program)>,
    ) -> Tried {
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
    pub(super) fn touched(&mut self, program: &Program, place: (usize, usize)) -> Vec<(u64, u64)> {
        let Ok(worker) = self.runner.worker() else { return Vec::new() };
        let bytes = worker.read(at::TRACE, program.traced);
        let rip = worker.base() + worker.rip_area() as u64;
        trace::accesses_of(self.block, &program.slots, &bytes, place, rip)
    }

    /// Everything about a run that came to its end.
    pub(super) fn found(
        &mut self,
        start: &Start,
        program: &Program,
    ) -> Result<std::result::Result<Found, Failure>> {
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
            return Ok(Err(Failure::of_all("it overwrote the harness")));
        };
        if let Some(failure) = foreign(&accesses, base) {
            self.runner.discard();
            return Ok(Err(failure));
        }
        if let Some(failure) = split_lock(self.block, &accesses) {
            return Ok(Err(failure));
        }
        // A page that no access of the trace explains means that there are others.
        complete &= pages.iter().all(|page| accesses.iter().any(|a| a.touches(*page)));
        let mut lines =
            self.runner.changed_lines(&pages, start.values.memory, options.physical_pages);
        written_lines(&accesses, &pages, options.physical_pages, &mut lines);
        if lines.len() > at::LINES_MAX {
            return Ok(Err(Failure::of_all(format!("{MANY_LINES}{} cache lines", lines.len()))));
        }
        let (values, reseeded) = (start.values.clone(), start.reseeded.clone());
        let end = End { registers: self.runner.end_registers(), memory: self.runner.memory() };
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
