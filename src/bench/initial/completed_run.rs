//! Results of a completed traced run: pages, accesses, lines written, final state.

use super::failure::{Failure, Why};
use super::masks::without_faults;
use super::trace::{self, Access};
use super::value_search::{Candidate, ValueSearch};
use crate::harness::Program;
use crate::initial::run_setup::{FinalState, RunSetup};
use crate::sandbox::layout as at;
use iced_x86::Mnemonic;
use isa::code::Block;
use std::collections::HashSet;
use tma::Result;

impl ValueSearch<'_> {
    /// The setup of a run that completed, or why it cannot be measured.
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
