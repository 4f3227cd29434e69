//! Accesses that may alias: their addresses come from different unknown values, so the region does
//! not determine whether they overlap.

use super::machine::{FIRST_LOAD, LAST_LOAD, Machine, OPAQUE};
use super::program::Program;
use super::tally::Probe;

/// An unknown value that an address depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// The initial value of a general-purpose register, by its encoding number.
    Register(u8),
    /// The value that the instruction at this index loads from memory not stored to by the region.
    Load(usize),
    /// One of the loads beyond the number that are distinguished.
    SomeLoad,
    /// The result of an instruction that the simulator does not evaluate.
    Opaque,
}

/// Accesses whose addresses depend on the same unknown values and differ by constants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AliasClass {
    /// The unknown values; none if the addresses are constant.
    pub origins: Vec<Origin>,
    /// Whether one of them changes between iterations, or the addresses advance by an unknown amount, so
    /// that accesses of this class may also alias each other.
    pub varies: bool,
    /// Indices of the instructions that load.
    pub loads: Vec<usize>,
    /// Indices of the instructions that store.
    pub stores: Vec<usize>,
}

impl AliasClass {
    /// Whether it accesses the stack: its addresses are `rsp` plus constants.
    pub fn is_stack(&self) -> bool {
        self.origins == [Origin::Register(4)]
    }
}

/// The classes of a simulated program; `origins` are the origins of each access's address, `runs` where
/// the accesses were in two runs with different unknown values.
pub fn classes(
    program: &Program,
    machine: &Machine,
    origins: &[u64],
    runs: (&[Probe], &[Probe]),
) -> Vec<AliasClass> {
    let varying = machine.varying();
    let mut sets: Vec<((u64, u64), AliasClass)> = Vec::new();
    for (access, set) in origins.iter().enumerate() {
        let address = &program.addresses[access];
        let (one, other) = (runs.0[access], runs.1[access]);
        let varies = set & varying != 0;
        // Accesses of a class differ by the same constant whatever the unknown values are.
        let moved = match varies || *set == 0 {
            true => 0,
            false => one.address.wrapping_sub(other.address),
        };
        let varies = varies || *set != 0 && one.stride != other.stride;
        let at = match sets.iter().position(|(key, _)| *key == (*set, moved)) {
            Some(at) => at,
            None => {
                let class = AliasClass {
                    origins: named(*set, program, machine),
                    varies: false,
                    loads: Vec::new(),
                    stores: Vec::new(),
                };
                sets.push(((*set, moved), class));
                sets.len() - 1
            }
        };
        sets[at].1.varies |= varies;
        let (instruction, _) = program.owners[access];
        let class = &mut sets[at].1;
        for (wanted, list) in [(address.load, &mut class.loads), (address.store, &mut class.stores)]
        {
            if wanted && list.last() != Some(&instruction) {
                list.push(instruction);
            }
        }
    }
    sets.into_iter().map(|(_, class)| class).collect()
}

fn named(set: u64, program: &Program, machine: &Machine) -> Vec<Origin> {
    let bits = (0..64).map(|bit| 1u64 << bit).filter(|bit| set & bit != 0);
    bits.map(|bit| match bit {
        OPAQUE => Origin::Opaque,
        bit if bit < 1 << FIRST_LOAD => Origin::Register(bit.trailing_zeros() as u8),
        bit if bit == 1 << LAST_LOAD => Origin::SomeLoad,
        bit => match machine.origin_of(bit) {
            Some(access) => Origin::Load(program.owners[access].0),
            None => Origin::SomeLoad,
        },
    })
    .collect()
}

/// Stores of a class, and accesses of the same or another class that they may alias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MayAlias<'a> {
    /// The class of the stores.
    pub stores: &'a AliasClass,
    /// The class of the other accesses: its loads and stores, or its loads alone if its stores are in
    /// another pair with the same two classes.
    pub others: &'a AliasClass,
    /// Whether the stores of `others` belong to the pair.
    pub with_stores: bool,
}

/// All pairs that are not decided, each pair of accesses once.
pub fn may_alias_pairs(classes: &[AliasClass]) -> impl Iterator<Item = MayAlias<'_>> {
    let all = (0..classes.len()).flat_map(move |i| (0..classes.len()).map(move |j| (i, j)));
    all.filter_map(move |(i, j)| {
        let (stores, others) = (&classes[i], &classes[j]);
        // Stores of both are listed in the order of the classes.
        let with_stores = i <= j && !others.stores.is_empty();
        let any = !stores.stores.is_empty() && (with_stores || !others.loads.is_empty());
        let undecided = i != j || stores.varies;
        (any && undecided).then_some(MayAlias { stores, others, with_stores })
    })
}
