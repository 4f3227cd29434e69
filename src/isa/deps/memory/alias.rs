//! Accesses that may alias: their addresses come from different unknown values, so the region does
//! not determine whether they overlap.

use super::machine::{FIRST_LOAD, LAST_LOAD, Machine, OPAQUE};
use super::program::Program;

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

/// Accesses whose addresses depend on the same unknown values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AliasClass {
    /// The unknown values; none if the addresses are constant.
    pub origins: Vec<Origin>,
    /// Whether one of them changes between iterations, so that accesses of this class may also alias
    /// each other.
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

/// The classes of a simulated program; `origins` are the origins of each access's address.
pub fn classes(program: &Program, machine: &Machine, origins: &[u64]) -> Vec<AliasClass> {
    let varying = machine.varying();
    let mut sets: Vec<(u64, AliasClass)> = Vec::new();
    for (access, set) in origins.iter().enumerate() {
        let address = &program.addresses[access];
        let at = match sets.iter().position(|(s, _)| s == set) {
            Some(at) => at,
            None => {
                let class = AliasClass {
                    origins: named(*set, program, machine),
                    varies: set & varying != 0,
                    loads: Vec::new(),
                    stores: Vec::new(),
                };
                sets.push((*set, class));
                sets.len() - 1
            }
        };
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

/// Pairs of classes that may alias and of which the first stores. Each pair is listed once; if both
/// store, in the order of the classes.
pub fn may_alias_pairs(classes: &[AliasClass]) -> impl Iterator<Item = (&AliasClass, &AliasClass)> {
    let may_alias = |i: usize, j: usize| i != j || classes[i].varies;
    (0..classes.len())
        .flat_map(move |i| (0..classes.len()).map(move |j| (i, j)))
        .filter(move |(i, j)| {
            !classes[*i].stores.is_empty()
                && may_alias(*i, *j)
                // If both store, list the pair only in the order of the classes.
                && (classes[*j].stores.is_empty() || i <= j)
        })
        .map(move |(i, j)| (&classes[i], &classes[j]))
}
