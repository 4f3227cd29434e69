//! The search for initial values: one traced run after the other, each from what the last ones
//! said.

use super::failure::{Failure, ILLEGAL};
use super::values::Values;
use crate::Options;
use crate::harness::program::Program;
use crate::harness::required_state::Needs;
use crate::initial::run_setup::Found;
use crate::runner::Runner;
use iced_x86::Register;
use isa::code::Block;
use isa::code::Inst;
use tma::Result;

/// Copies that are worth measuring: fewer bias dense blocks.
pub(super) const ENOUGH: usize = 32;

/// So many times as many pages as may be touched are expected where it is sure that there are too many.
const SURE: f64 = 1.5;

/// Initial values and registers set again before every copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) values: Values,
    pub(super) reseeded: Vec<u8>,
}

/// An attempt that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tried {
    pub(super) start: Start,
    pub(super) failure: Failure,
    /// Whether fewer copies could help.
    pub(super) fewer: bool,
    /// What the failing instruction touched, with sizes.
    pub(super) touched: Vec<(u64, u64)>,
    /// Whether its alignment may be what is wrong.
    pub(super) alignment: bool,
}

/// One block's search.
pub struct Seeker<'a> {
    pub(super) runner: &'a mut Runner,
    pub(super) block: &'a Block,
    pub(super) needs: &'a Needs,
    pub(super) options: &'a Options,
    pub(super) copies: usize,
    /// Pages that an attempt may touch.
    pub(super) pages: usize,
    /// Whether no other search with more copies follows.
    pub(super) last_stage: bool,
    /// Prepared sets of values, from the first, that are known to fail.
    pub(super) failed: usize,
    /// Pages that a copy touches, by an earlier stage.
    pub(super) pages_a_copy: f64,
    /// The attempt that got furthest.
    pub(super) best: Option<Tried>,
    /// The first failure: what there is to say in the end.
    pub(super) first: Option<Tried>,
    /// The last trace's code, with what it was made for and in which worker it lies.
    pub(super) program: Option<(usize, Vec<u8>, u32, Program)>,
}

impl<'a> Seeker<'a> {
    /// Nothing tried yet.
    pub fn new(
        runner: &'a mut Runner,
        block: &'a Block,
        needs: &'a Needs,
        copies: usize,
        options: &'a Options,
    ) -> Self {
        let pages = options.pages_allowed();
        Self {
            runner,
            block,
            needs,
            options,
            copies,
            pages,
            last_stage: true,
            failed: 0,
            pages_a_copy: 0.0,
            best: None,
            first: None,
            program: None,
        }
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
        if let Some(found) = self.sets(&all[self.failed.min(all.len())..], &[], ENOUGH)? {
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
    pub(super) fn may_search(&self) -> bool {
        let options = self.options;
        options.values.is_none() && options.value_sets > 1 && options.mapping
    }

    /// With what the user has fixed.
    pub(super) fn fixed(&self, mut values: Values) -> Values {
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
        for (n, values) in all.iter().enumerate() {
            self.copies = whole;
            // Each page costs a run: none are made that are sure to touch too many.
            let expected = |copies: usize| self.pages_a_copy * copies as f64;
            while n == 0
                && self.copies >= 2 * least
                && expected(self.copies) > SURE * self.pages as f64
            {
                self.copies /= 2;
            }
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

/// Whether the block writes a general-purpose register.
pub(super) fn writes(block: &Block, number: u8) -> bool {
    block.instructions.iter().flat_map(|i| &i.registers).any(|used| {
        let full = used.register().full_register();
        Inst::writes(used.access()) && full.is_gpr64() && full.number() == usize::from(number)
    })
}
