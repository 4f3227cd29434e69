//! Entry points of the search for initial values: finds values and pages with which a block runs, within the L1
//! data cache if possible, and checks that the measured code does the same as the traced code.

use super::proposals::smaller_strides;
use super::run_setup::RunSetup;
use super::value_search::{Candidate, ValueSearch};
use super::{Failure, explain};
use crate::Options;
use crate::harness::{RequiredState, forms};
use crate::runner::{BLOCK_CODE, Runner};
use crate::sandbox::Ended;
use crate::values::Values;
use iced_x86::Mnemonic;
use isa::code::{Block, Inst};
use tma::Result;

/// A search with a smaller budget is a short one.
const SHORT_BUDGET: usize = 60;
/// Most pages of a run in a short search: every page costs a run.
const SHORT_PAGES: usize = 8;

/// Finds values and pages with which `copies` copies of the block run, or fewer if need be.
///
/// In this order: the predefined sets of values; hill climbing on the inputs of the failing
/// instruction; fewer copies; registers reinitialised before every copy.
///
/// # Errors
/// The sandbox cannot be started. A block that does not run is a [`Failure`].
pub fn discover(
    runner: &mut Runner,
    block: &Block,
    required_state: &RequiredState,
    copies: usize,
    options: &Options,
) -> Result<std::result::Result<RunSetup, Failure>> {
    ValueSearch::new(runner, block, required_state, copies, options).run()
}

/// A stage of the search.
pub struct Stage<'a> {
    /// Copies that are to run.
    pub copies: usize,
    /// Whether no other follows.
    pub is_last: bool,
    /// The setup that the one before it found.
    pub before: Option<&'a RunSetup>,
}

/// One of two stages. The first uses few copies, which suffice if addresses do not change between copies.
/// Otherwise the second uses all copies and starts at the set of values that the first found: earlier sets failed
/// with few copies and would fail again.
pub fn discover_staged(
    runner: &mut Runner,
    block: &Block,
    required_state: &RequiredState,
    stage: Stage<'_>,
    options: &Options,
) -> Result<std::result::Result<RunSetup, Failure>> {
    let Stage { copies, is_last, before } = stage;
    let mut search = ValueSearch::new(runner, block, required_state, copies, options);
    (search.is_last_stage, search.earlier) = (is_last, before);
    if let Some(before) = before.filter(|before| before.reseeded.is_empty()) {
        let sets = options.candidates();
        search.failed_sets = sets.iter().position(|set| *set == before.values).unwrap_or_default();
        search.pages_per_copy = before.pages.len() as f64 / before.copies as f64;
    }
    search.run()
}

/// Runs `copies` copies once from these values, without any search.
pub fn run_once(
    runner: &mut Runner,
    block: &Block,
    required_state: &RequiredState,
    copies: usize,
    values: &Values,
    options: &Options,
) -> Result<std::result::Result<RunSetup, Failure>> {
    let start = Candidate { values: values.clone(), reseeded: Vec::new() };
    let mut search = ValueSearch::new(runner, block, required_state, copies, options);
    Ok(search.traced_run(&start)?.map_err(|run| run.failure))
}

/// Runs the copies of `setup` once more, without any search, so that the worker holds its pages.
pub fn run_again(
    runner: &mut Runner,
    block: &Block,
    required_state: &RequiredState,
    setup: &RunSetup,
    options: &Options,
) -> Result<std::result::Result<(), Failure>> {
    let start = Candidate { values: setup.values.clone(), reseeded: setup.reseeded.clone() };
    let mut search = ValueSearch::new(runner, block, required_state, setup.copies, options);
    let again = search.traced_run_after(&start, Some(setup))?;
    Ok(again.map(|_| ()).map_err(|run| run.failure))
}

/// Runs the copies as they are measured and compares pages, registers and memory at the end with
/// those of the traced run. Both execute the same instructions, so equal end states mean equal
/// addresses in between.
pub fn replay(
    runner: &mut Runner,
    block: &Block,
    required_state: &RequiredState,
    setup: &RunSetup,
    options: &Options,
) -> Result<std::result::Result<(), Failure>> {
    let shape = setup.shape(block, required_state, setup.copies, BLOCK_CODE);
    let program = forms::replay(&shape);
    let ended = runner.run_once(&program)?;
    if ended != Ended::Done {
        return Ok(Err(explain(&ended, &program, options.pages_allowed())));
    }
    Ok(compare_end_state(runner, block, setup))
}

/// Compares the end of a run that replayed the copies last with that of the traced run.
///
/// # Errors
/// Pages, registers or memory differ.
pub fn compare_end_state(
    runner: &Runner,
    block: &Block,
    setup: &RunSetup,
) -> std::result::Result<(), Failure> {
    let differs = |what: &str| {
        Err(Failure::of_block(format!(
            "{what} than the traced run: the block depends on state outside its registers and memory"
        )))
    };
    if runner.pages().as_ref() != Some(&setup.pages) {
        return differs("the measured run touches other pages");
    }
    let nondeterministic = |inst: &Inst| {
        use Mnemonic as M;
        matches!(
            inst.decoded.mnemonic(),
            M::Rdtsc | M::Rdtscp | M::Rdpid | M::Fnstenv | M::Fstenv | M::Fnsave | M::Fsave
        )
    };
    if block.instructions.iter().any(nondeterministic) {
        return Ok(());
    }
    if runner.end_registers() != setup.end.registers {
        return differs("the measured run ends with other registers");
    }
    if !runner.holds(&setup.end.memory) {
        return differs("the measured run leaves other memory");
    }
    Ok(())
}

impl ValueSearch<'_> {
    /// A setup whose lines all fit the L1 data cache, if one is found; else the best.
    pub(super) fn fit_into_l1(&mut self, mut setup: RunSetup) -> Result<RunSetup> {
        let whole = self.copies;
        let limit = self.options.physical_pages;
        if !self.may_search() || setup.fits_l1_data(limit) {
            return Ok(setup);
        }
        if !self.is_last_stage && !setup.is_stationary() {
            return Ok(setup);
        }
        let (whole_budget, pages) = (self.options.value_search_budget, self.pages);
        let mut budget = whole_budget;
        'better: while budget > 0 && !setup.fits_l1_data(limit) {
            // A candidate with more pages than now is no improvement; a short search accepts only
            // candidates that fit at once.
            let short = whole_budget < SHORT_BUDGET;
            let most = if short { limit.min(SHORT_PAGES) } else { setup.pages.len().max(limit) };
            self.pages = pages.min(most);
            let others =
                if budget == whole_budget { self.options.candidates() } else { Vec::new() };
            for values in others.into_iter().chain(smaller_strides(self.block, &setup.values)) {
                if budget == 0 || self.is_hopeless() {
                    break 'better;
                }
                let values = self.with_user_values(values);
                let start = Candidate { values, reseeded: setup.reseeded.clone() };
                let outcome = self.traced_run(&start)?;
                budget = budget.saturating_sub(self.run_cost());
                if let Ok(other) = outcome
                    && other.cache_footprint() < setup.cache_footprint()
                {
                    setup = other;
                    continue 'better;
                }
            }
            break;
        }
        (self.copies, self.pages) = (whole.min(setup.copies), pages);
        if budget == whole_budget {
            return Ok(setup);
        }
        self.run_again(setup)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Shape;
    use isa::code::parse_hex;

    /// A block whose jump is taken in every other copy: where the measured code would take one,
    /// it is sent to an instruction that traps.
    #[test]
    fn no_copy_of_the_measured_run_takes_its_final_jump() {
        // xor rax,1; test al,1; jnz (near)
        let block = Block::decode(&parse_hex("4883f001 a801 0f8500000000").unwrap()).unwrap();
        let (required_state, options, copies) = (RequiredState::of(&block), Options::default(), 20);
        let mut runner = Runner::new(Default::default(), None, false);
        let setup =
            discover(&mut runner, &block, &required_state, copies, &options).unwrap().unwrap();
        let alternating: Vec<bool> = (0..copies).map(|copy| copy % 2 == 0).collect();
        assert_eq!(setup.taken, alternating);
        let run = |runner: &mut Runner, taken: &[bool]| {
            let shape = Shape {
                block: &block,
                required_state: &required_state,
                copies,
                lines: false,
                reseeded: &[],
                taken,
                start: BLOCK_CODE,
                rip_area: setup.rip_area,
            };
            let mut program = forms::replay(&shape);
            let trap = program.end();
            for (offset, _, instruction) in &program.origins {
                if *instruction == 2 {
                    let field = offset + 2 - program.start;
                    let distance = (trap - (offset + 6)) as i32;
                    program.bytes[field..field + 4].copy_from_slice(&distance.to_le_bytes());
                }
            }
            program.bytes.extend([0x0f, 0x0b]); // ud2
            runner.run_once(&program).unwrap()
        };
        assert_eq!(run(&mut runner, &setup.taken), Ended::Done);
        let trapped = run(&mut runner, &vec![false; copies]);
        assert!(matches!(trapped, Ended::Fault(fault) if fault.signal == libc::SIGILL));
    }

    #[test]
    fn a_run_that_begins_with_known_pages_ends_alike() {
        // mov rax,[rbx]; mov rcx,[rdx+0x5000]
        let block = Block::decode(&parse_hex("488b03 488b8a00500000").unwrap()).unwrap();
        let (required_state, options) = (RequiredState::of(&block), Options::default());
        let mut runner = Runner::new(Default::default(), None, false);
        let setup = discover(&mut runner, &block, &required_state, 4, &options).unwrap().unwrap();
        assert_eq!(setup.pages, [0x1234_5000, 0x1234_a000]);
        let again = run_again(&mut runner, &block, &required_state, &setup, &options).unwrap();
        assert_eq!((again, runner.pages()), (Ok(()), Some(setup.pages)));
        assert_eq!(runner.end_registers(), setup.end.registers);
        assert!(runner.holds(&setup.end.memory));
    }

    #[test]
    fn a_block_that_reads_what_is_never_set_up_is_not_passed_as_repeatable() {
        // add rax,rbx; mov rcx,[rax]
        let block = Block::decode(&parse_hex("4801d8 488b08").unwrap()).unwrap();
        let (required_state, options) = (RequiredState::of(&block), Options::default());
        let mut runner = Runner::new(Default::default(), None, false);
        let mut setup =
            discover(&mut runner, &block, &required_state, 4, &options).unwrap().unwrap();
        runner.lines(&setup.lines).unwrap();
        let again = replay(&mut runner, &block, &required_state, &setup, &options).unwrap();
        assert_eq!(again, Ok(()));
        // As if the traced run had ended elsewhere.
        setup.end.registers[1] ^= 1;
        let again = replay(&mut runner, &block, &required_state, &setup, &options).unwrap();
        assert!(again.unwrap_err().reason.to_string().contains("registers"));
        setup.pages.pop();
        let again = replay(&mut runner, &block, &required_state, &setup, &options).unwrap();
        assert!(again.unwrap_err().reason.to_string().contains("pages"));
    }
}
