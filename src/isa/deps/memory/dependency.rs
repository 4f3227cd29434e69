//! Memory dependencies as data, the counts of the stores that each load reads, and accesses that may alias: their
//! addresses come from different unknown values, so the region does not determine whether they overlap.

use super::machine::{FIRST_LOAD, LAST_LOAD, Machine, OPAQUE, Observer};
use super::operation::Program;
use crate::deps::Overlap;

/// A true dependency through memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryDependency {
    /// Index of the storing instruction.
    pub writer: usize,
    /// Index of the loading instruction.
    pub reader: usize,
    /// Index of the load in the reader's accesses.
    pub access: usize,
    /// Iterations from the store to the load.
    pub delta: u32,
    /// Overlap of load and store.
    pub overlap: crate::deps::Overlap,
}

/// The memory dependencies of a region.
#[derive(Debug, Clone, Default)]
pub struct MemoryDependencies {
    /// Dependencies, in order of reader.
    pub dependencies: Vec<MemoryDependency>,
    /// Accesses grouped by the origins of their addresses.
    pub classes: Vec<AliasClass>,
    /// Indices of instructions whose results are unknown.
    pub opaque: Vec<usize>,
    /// Indices of repeated string instructions whose count was known in every execution.
    pub repeated: Vec<usize>,
    /// Iterations per run.
    pub iterations: u32,
}

/// A store of the same or an earlier iteration that a load read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    writer: u32,
    delta: u32,
    /// Counts of [`Overlap::Full`], [`Overlap::Partial`] and [`Overlap::Blocked`].
    times: [u32; 3],
}

/// A dependency seen in most iterations of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Index of the loading access in the program.
    pub access: usize,
    /// Index of the storing instruction.
    pub writer: usize,
    /// Iterations from the store to the load.
    pub delta: u32,
    /// The most frequent overlap.
    pub overlap: Overlap,
}

/// The counts of one run.
#[derive(Debug, Default)]
pub struct Tally {
    /// Instructions per iteration.
    length: u32,
    /// Size of the reorder buffer: earlier stores have been written to the cache.
    window: u32,
    seen: Vec<Vec<Seen>>,
    /// Origins of each access's address, from the last iteration.
    pub origins: Vec<u64>,
    /// Each access's address in the [`PROBED`] iteration, and its change since the one before.
    pub probes: Vec<Probe>,
}

/// Where an access was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Probe {
    /// Its address.
    pub address: u64,
    /// Minus its address in the iteration before.
    pub stride: u64,
}

/// The iteration, from 0, whose addresses two runs compare.
pub const PROBED: u32 = 2;

impl Tally {
    /// Clears the counts, for a program with `accesses` accesses.
    pub fn reset(&mut self, length: usize, window: u32, accesses: usize) {
        (self.length, self.window) = (length as u32, window);
        self.seen.iter_mut().for_each(Vec::clear);
        self.seen.resize_with(accesses.max(self.seen.len()), Vec::new);
        self.origins.clear();
        self.origins.resize(accesses, 0);
        self.probes.clear();
        self.probes.resize(accesses, Probe::default());
    }

    /// The dependencies seen in at least half of the iterations in which they are possible.
    pub fn majority(&self, iterations: u32) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for (access, all) in self.seen.iter().enumerate() {
            for seen in all {
                let times: u32 = seen.times.iter().sum();
                let possible = iterations.saturating_sub(seen.delta);
                if times > 0 && times * 2 >= possible {
                    candidates.push(Candidate {
                        access,
                        writer: seen.writer as usize,
                        delta: seen.delta,
                        overlap: most_frequent(seen.times),
                    });
                }
            }
        }
        candidates
    }
}

fn most_frequent([full, partial, blocked]: [u32; 3]) -> Overlap {
    if full >= partial && full >= blocked {
        Overlap::Full
    } else if partial >= blocked {
        Overlap::Partial
    } else {
        Overlap::Blocked
    }
}

impl Observer for Tally {
    fn loaded(&mut self, index: usize, step: u16, bytes: u32, writers: &[(u16, u32)]) {
        if writers.is_empty() || self.length == 0 {
            return;
        }
        let (window, length) = (self.window, self.length);
        let step = u32::from(step);
        let near = |writer: &&(u16, u32)| step - u32::from(writer.0) <= window;
        let stores = writers.iter().filter(near).count();
        for (writer, of) in writers.iter().filter(near) {
            let overlap = match stores {
                1 if *of == bytes => 0,
                1 => 1,
                _ => 2,
            };
            let writer = u32::from(*writer);
            let delta = step / length - writer / length;
            let writer = writer % length;
            let all = &mut self.seen[index];
            let seen = match all.iter_mut().position(|s| s.writer == writer && s.delta == delta) {
                Some(at) => &mut all[at],
                None => {
                    all.push(Seen { writer, delta, times: [0; 3] });
                    let last = all.len() - 1;
                    &mut all[last]
                }
            };
            seen.times[overlap] += 1;
        }
    }

    fn located(&mut self, index: usize, step: u16, address: u64, origins: u64) {
        self.origins[index] = origins;
        if self.length > 0 && u32::from(step) / self.length <= PROBED {
            let before = self.probes[index].address;
            self.probes[index] = Probe { address, stride: address.wrapping_sub(before) };
        }
    }
}

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
