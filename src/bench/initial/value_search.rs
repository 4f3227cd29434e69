//! The search for initial values: the order in which candidates are tried, one traced run each.

use super::{Failure, Why};
use crate::Options;
use crate::harness::{Program, RequiredState};
use crate::initial::run_setup::RunSetup;
use crate::runner::Runner;
use crate::values::Values;
use iced_x86::Register;
use isa::code::{Block, Inst};
use tma::Result;

/// Fewest copies worth measuring: fewer bias the result of short blocks.
pub(super) const MIN_COPIES: usize = 32;

/// A candidate is skipped where it is expected to touch more than this times the page limit.
const EXCESS_PAGES: f64 = 1.5;

/// A point of the search: initial values, and registers reinitialised before every copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) values: Values,
    pub(super) reseeded: Vec<u8>,
}

/// A traced run that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FailedRun {
    pub(super) start: Candidate,
    pub(super) failure: Failure,
    /// Whether fewer copies may help.
    pub(super) fewer_copies_may_help: bool,
    /// Addresses and sizes that the failing instruction accessed.
    pub(super) touched: Vec<(u64, u64)>,
    /// Whether misalignment may be the cause.
    pub(super) may_be_misaligned: bool,
}

/// One block's search.
pub struct ValueSearch<'a> {
    pub(super) runner: &'a mut Runner,
    pub(super) block: &'a Block,
    pub(super) required_state: &'a RequiredState,
    pub(super) options: &'a Options,
    pub(super) copies: usize,
    /// Pages that a run may touch.
    pub(super) pages: usize,
    /// Whether no stage with more copies follows.
    pub(super) is_last_stage: bool,
    /// Predefined sets of values, from the first, that are known to fail.
    pub(super) failed_sets: usize,
    /// Pages per copy in an earlier stage.
    pub(super) pages_per_copy: f64,
    /// The run that got furthest.
    pub(super) best_failure: Option<FailedRun>,
    /// The first failure: reported if the search fails.
    pub(super) first_failure: Option<FailedRun>,
    /// An earlier run that the first one repeats, with more copies.
    pub(super) earlier: Option<&'a RunSetup>,
    /// The worker in which the last run faulted, by number.
    pub(super) faulted_in: Option<u32>,
    /// Pages that the last run mapped.
    pub(super) mapped: usize,
    /// Tracing code of the last run: copies, reinitialised registers, number of its worker, program.
    pub(super) program: Option<(usize, Vec<u8>, u32, Program)>,
}

impl<'a> ValueSearch<'a> {
    /// A search that has not run anything yet.
    pub fn new(
        runner: &'a mut Runner,
        block: &'a Block,
        required_state: &'a RequiredState,
        copies: usize,
        options: &'a Options,
    ) -> Self {
        let pages = options.pages_allowed();
        Self {
            runner,
            block,
            required_state,
            options,
            copies,
            pages,
            is_last_stage: true,
            failed_sets: 0,
            pages_per_copy: 0.0,
            best_failure: None,
            first_failure: None,
            earlier: None,
            faulted_in: None,
            mapped: 0,
            program: None,
        }
    }

    /// The whole search.
    pub fn run(mut self) -> Result<std::result::Result<RunSetup, Failure>> {
        let setup = match self.runnable()? {
            Some(setup) => Some(self.fit_into_l1(setup)?),
            None => None,
        };
        let first_failure = self.first_failure;
        Ok(setup
            .ok_or_else(|| first_failure.map_or_else(Failure::not_attempted, |run| run.failure)))
    }

    /// Any setup with which the block runs.
    fn runnable(&mut self) -> Result<Option<RunSetup>> {
        let all = self.options.candidates();
        let search = self.may_search();
        if let Some(setup) =
            self.try_sets(&all[self.failed_sets.min(all.len())..], &[], MIN_COPIES)?
        {
            return Ok(Some(setup));
        }
        if self.is_hopeless() {
            return Ok(None);
        }
        if search && let Some(setup) = self.hill_climb(false)? {
            return Ok(Some(setup));
        }
        if search && let Some(setup) = self.fewer_copies()? {
            return Ok(Some(setup));
        }
        if !self.options.reseed {
            return self.try_sets(&all, &[], 4);
        }
        let mut setup = self.hill_climb(true)?;
        if setup.is_none() && self.best_failure != self.first_failure {
            self.best_failure.clone_from(&self.first_failure);
            setup = self.hill_climb(true)?;
        }
        let clobbered = clobbered_addresses(self.block);
        if setup.is_none() && !clobbered.is_empty() {
            setup = self.try_sets(&all, &clobbered, MIN_COPIES)?;
        }
        match setup {
            Some(setup) => Ok(Some(self.prune_reseeded(setup)?)),
            None => self.try_sets(&all, &[], 4),
        }
    }

    /// Whether values beyond the predefined sets may be tried.
    pub(super) fn may_search(&self) -> bool {
        let options = self.options;
        options.values.is_none() && options.value_sets > 1 && options.mapping
    }

    /// `values` with those that the user has set by `--init`.
    pub(super) fn with_user_values(&self, mut values: Values) -> Values {
        for (place, value) in &self.options.init {
            place.set(&mut values, *value);
        }
        values
    }

    /// Whether trying other values is pointless: the processor lacks an instruction, the block's time is up, or
    /// the measurement is cancelled.
    pub(super) fn is_hopeless(&self) -> bool {
        self.runner.limit.is_spent()
            || self.options.progress.is_cancelled()
            || self.first_failure.as_ref().is_some_and(|run| run.failure.reason == Why::Illegal)
    }

    /// Tries one set of values after the other, each with fewer copies if it touches too many pages,
    /// but with no fewer than `least`.
    fn try_sets(
        &mut self,
        all: &[Values],
        reseeded: &[u8],
        least: usize,
    ) -> Result<Option<RunSetup>> {
        let whole = self.copies;
        for (n, values) in all.iter().enumerate() {
            self.copies = whole;
            // Every page costs a run: skip runs that are expected to touch too many.
            let expected = |copies: usize| self.pages_per_copy * copies as f64;
            while n == 0
                && self.copies >= 2 * least
                && expected(self.copies) > EXCESS_PAGES * self.pages as f64
            {
                self.copies /= 2;
            }
            let start = Candidate { values: values.clone(), reseeded: reseeded.to_vec() };
            loop {
                match self.traced_run(&start)? {
                    Ok(setup) => return Ok(Some(setup)),
                    Err(_) if self.is_hopeless() => return Ok(None),
                    // Fewer copies fail at the same place, unless they end before it.
                    Err(run) if run.fewer_copies_may_help => {
                        let failed = run.failure.copy.unwrap_or(self.copies - 1);
                        while self.copies > failed && self.copies >= 2 * least {
                            self.copies /= 2;
                        }
                        if self.copies > failed {
                            break;
                        }
                    }
                    Err(_) => break,
                }
            }
        }
        self.copies = whole;
        Ok(None)
    }

    /// Drops every register that need not be reinitialised after all.
    fn prune_reseeded(&mut self, mut setup: RunSetup) -> Result<RunSetup> {
        self.copies = setup.copies;
        for register in setup.reseeded.clone() {
            let reseeded = setup.reseeded.iter().copied().filter(|r| *r != register).collect();
            let start = Candidate { values: setup.values.clone(), reseeded };
            if let Ok(fewer) = self.traced_run(&start)? {
                setup = fewer;
            }
        }
        self.run_again(setup)
    }

    /// Runs the copies once more from this setup, so that the worker holds its pages.
    pub(super) fn run_again(&mut self, setup: RunSetup) -> Result<RunSetup> {
        let start = Candidate { values: setup.values.clone(), reseeded: setup.reseeded.clone() };
        Ok(self.traced_run_after(&start, Some(&setup))?.unwrap_or(setup))
    }
}

/// Address registers whose initial value the block uses and then overwrites.
fn clobbered_addresses(block: &Block) -> Vec<u8> {
    let inputs = block.inputs();
    let mut setup = Vec::new();
    for memory in block.instructions.iter().flat_map(|i| &i.memory) {
        for register in [memory.base(), memory.index()].map(Register::full_register) {
            let number = register.number() as u8;
            if register.is_gpr64()
                && inputs.contains(&register)
                && !setup.contains(&number)
                && writes(block, number)
            {
                setup.push(number);
            }
        }
    }
    setup
}

/// Whether the block writes a general-purpose register.
pub(super) fn writes(block: &Block, number: u8) -> bool {
    block.instructions.iter().flat_map(|i| &i.registers).any(|used| {
        let full = used.register().full_register();
        Inst::writes(used.access()) && full.is_gpr64() && full.number() == usize::from(number)
    })
}
