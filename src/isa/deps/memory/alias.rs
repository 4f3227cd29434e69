//! Accesses that might meet although nothing in the region says so: their addresses come from
//! different unknown values.

use super::machine::{FIRST_LOAD, LAST_LOAD, Machine, OPAQUE};
use super::program::Program;

/// An unknown value that an address was computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// A register at the beginning, by its number in encodings.
    Register(u8),
    /// What the instruction of this index loads from memory that the region does not store to.
    Load(usize),
    /// A load, one of too many to tell apart.
    SomeLoad,
    /// The result of an instruction that is not evaluated.
    Opaque,
}

/// Accesses whose addresses come from the same unknown values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// These values; none: the address is a constant.
    pub origins: Vec<Origin>,
    /// Whether one of them is another value in each iteration, so that the accesses of this class
    /// might meet each other, too.
    pub varies: bool,
    /// Instructions that load.
    pub loads: Vec<usize>,
    /// Instructions that store.
    pub stores: Vec<usize>,
}

impl Class {
    /// Whether its addresses are those of the stack: `rsp` and constants.
    pub fn is_stack(&self) -> bool {
        self.origins == [Origin::Register(4)]
    }
}

/// The classes of a program that was run; `origins` are those of its accesses' addresses.
pub fn classes(program: &Program, machine: &Machine, origins: &[u64]) -> Vec<Class> {
    let varying = machine.varying();
    let mut sets: Vec<(u64, Class)> = Vec::new();
    for (access, set) in origins.iter().enumerate() {
        let place = &program.addresses[access];
        let at = match sets.iter().position(|(s, _)| s == set) {
            Some(at) => at,
            None => {
                let class = Class {
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
        for (wanted, list) in [(place.load, &mut class.loads), (place.store, &mut class.stores)] {
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

/// Pairs of classes of which the first stores and that might meet: their addresses come from
/// different unknown values. Each pair comes once; where both store, in the order of the classes.
pub fn pairs(classes: &[Class]) -> impl Iterator<Item = (&Class, &Class)> {
    let meets = |i: usize, j: usize| i != j || classes[i].varies;
    (0..classes.len())
        .flat_map(move |i| (0..classes.len()).map(move |j| (i, j)))
        .filter(move |(i, j)| {
            !classes[*i].stores.is_empty()
                && meets(*i, *j)
                // Where both store, the pair came already.
                && (classes[*j].stores.is_empty() || i <= j)
        })
        .map(move |(i, j)| (&classes[i], &classes[j]))
}
