//! Finds which loads an address may be computed from, by a forward dataflow analysis over a function, in which
//! registers and words of the stack or of fixed addresses carry the loads that their values may come from. It may
//! name too many; the recorded values decide.

use iced_x86::{FlowControl, Instruction, Register};
use isa::effects::{Access, ArchReg, Effects, Finder, Role};
use std::collections::{BTreeMap, BTreeSet};
use tma::tables::Facts;

/// Longest function that is analysed, in instructions: the analysis takes time by its square.
const LONGEST: usize = 20_000;
/// Registers that a callee preserves (System V ABI, AMD64, 3.2.1): rbx, rsp, rbp, r12 to r15.
const KEPT: u32 = 1 << 3 | 1 << 4 | 1 << 5 | 0xf << 12;

/// A basic block of a function.
#[derive(Debug, Clone, Default)]
pub struct Part {
    /// Its instructions, at their addresses.
    pub instructions: Vec<Instruction>,
    /// Indices of the blocks that may follow.
    pub successors: Vec<usize>,
}

/// Location of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Register(usize),
    /// A word at a fixed distance from a register, or at a fixed address: a spilled value.
    Word(u32, i64),
}

/// Places → the loads that their values may come from.
type State = BTreeMap<Place, BTreeSet<usize>>;

/// For each of these loads, by address, the indices of those that its address may be computed from.
/// Values are followed through registers and spilled words, not through calls.
pub fn origins(function: &[Part], loads: &[u64]) -> Vec<Vec<usize>> {
    let mut found = vec![BTreeSet::new(); loads.len()];
    if function.iter().map(|part| part.instructions.len()).sum::<usize>() > LONGEST {
        return vec![Vec::new(); loads.len()];
    }
    let number: BTreeMap<u64, usize> = loads.iter().enumerate().map(|(n, at)| (*at, n)).collect();
    let mut finder = Finder::new(&Facts::default());
    let mut effects = |one: &Instruction| (*one, finder.effects(one));
    let code: Vec<Vec<(Instruction, Effects)>> =
        function.iter().map(|part| part.instructions.iter().map(&mut effects).collect()).collect();
    let mut begin: Vec<Option<State>> = vec![None; function.len()];
    let mut pending: BTreeSet<usize> = (0..function.len()).collect();
    while let Some(block) = pending.pop_first() {
        let mut state = begin[block].clone().unwrap_or_default();
        for (instruction, effects) in &code[block] {
            let own = number.get(&instruction.ip()).copied();
            if let Some(own) = own {
                found[own].extend(address(&state, effects));
            }
            execute(&mut state, instruction, effects, own);
        }
        for next in &function[block].successors {
            if join(&mut begin[*next], &state) {
                pending.insert(*next);
            }
        }
    }
    found.into_iter().map(|all| all.into_iter().collect()).collect()
}

/// The loads that the address of a load may come from.
fn address(state: &State, effects: &Effects) -> BTreeSet<usize> {
    let is_load = |read: &&isa::effects::Read| match read.role {
        Role::Address(at) => effects.memory.get(usize::from(at)).is_some_and(|m| m.load),
        _ => false,
    };
    let reads = effects.reads.iter().filter(is_load);
    reads.flat_map(|read| of(state, Place::Register(read.reg.index()))).collect()
}

fn of(state: &State, place: Place) -> impl Iterator<Item = usize> {
    state.get(&place).into_iter().flatten().copied()
}

/// The word of an access, if its distance to a register of the stack, or its address, is fixed.
fn word(access: &Access) -> Option<Place> {
    let is_fixed = matches!(access.base, Register::None | Register::RSP | Register::RBP);
    (is_fixed && access.index == Register::None && access.segment == Register::None)
        .then_some(Place::Word(access.base as u32, access.displacement))
}

/// Effect of an instruction on the state. `own` is its number if it is one of the loads.
fn execute(state: &mut State, instruction: &Instruction, effects: &Effects, own: Option<usize>) {
    if matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall) {
        let is_kept = |place: &Place| match place {
            Place::Register(number) => *number < 16 && KEPT >> number & 1 == 1,
            Place::Word(..) => true,
        };
        state.retain(|place, _| is_kept(place));
        return;
    }
    // The loaded value: from this load, or a value that was spilled there.
    let mut loaded: BTreeSet<usize> = own.into_iter().collect();
    for access in effects.memory.iter().filter(|m| m.load) {
        loaded.extend(word(access).into_iter().flat_map(|place| of(state, place)));
    }
    let mut written = Vec::new();
    for write in &effects.writes {
        let mut all = BTreeSet::new();
        for read in &effects.reads {
            let is_value = matches!(read.role, Role::Data | Role::Merged | Role::Stack);
            if is_value && !read.reg.is_flag() && effects.flows(read, write) {
                all.extend(of(state, Place::Register(read.reg.index())));
            }
            // `lea` computes with what is an address elsewhere.
        }
        if effects.memory.iter().any(|m| m.load) && effects.loaded_flows(write) {
            all.extend(&loaded);
        }
        if !write.whole && !write.reg.is_vector() {
            all.extend(of(state, Place::Register(write.reg.index())));
        }
        written.push((Place::Register(write.reg.index()), all));
    }
    for access in effects.memory.iter().filter(|m| m.store) {
        let Some(place) = word(access) else { continue };
        let stored = effects.reads.iter().filter(|read| effects.flows_to_store(read));
        let registers = stored.filter(|read| matches!(read.role, Role::Data | Role::Merged));
        let mut all: BTreeSet<usize> =
            registers.flat_map(|read| of(state, Place::Register(read.reg.index()))).collect();
        if access.load {
            all.extend(&loaded);
        }
        written.push((place, all));
    }
    for (place, all) in written {
        match all.is_empty() || matches!(place, Place::Register(n) if is_flag(n)) {
            true => _ = state.remove(&place),
            false => _ = state.insert(place, all),
        }
    }
}

fn is_flag(number: usize) -> bool {
    (ArchReg::CARRY.index()..=ArchReg::SZAP.index()).contains(&number)
}

/// Adds a state to the one at the start of a block; whether that changes it.
fn join(begin: &mut Option<State>, state: &State) -> bool {
    let Some(begin) = begin else {
        *begin = Some(state.clone());
        return true;
    };
    let mut changed = false;
    for (place, all) in state {
        let known = begin.entry(*place).or_default();
        let before = known.len();
        known.extend(all);
        changed |= known.len() > before;
    }
    changed
}
