//! The simulator's state, the parameters of the search for memory dependencies, and moves of vector registers, which may
//! hold pointers and counters.
//!
//! Every value carries its *origins*: the set of unknown values that it was computed from, as a bit
//! mask. Bits 0 to 15 are the initial registers, the following ones loads from memory that was not
//! stored to, and the last bit all results that are not evaluated.

use super::action::Action;
use super::arithmetic::Flags;
use super::operation::{Address, Back, Operation, Registers, Slot};
use super::shadow::{Shadow, low_bytes};

/// Known values at the start of the first iteration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InitialValues {
    /// General-purpose registers by encoding number.
    pub registers: [Option<u64>; 16],
    /// Address and value of eight-byte words.
    pub memory: Vec<(u64, u64)>,
    /// Value of all other aligned eight-byte words.
    pub fill: Option<u64>,
}

/// Parameters of the search.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Entries of the reorder buffer: the maximum distance of a store and a dependent load, in
    /// instructions.
    pub window: u32,
    /// Number of runs, each with different random values.
    pub runs: u32,
    /// Sets of initial values, which the runs use in rotation.
    pub initial_values: Vec<InitialValues>,
}

/// Limit on [`Settings::window`].
pub const MAX_WINDOW: u32 = 1 << 14;

/// Limit on [`Settings::runs`].
pub const MAX_RUNS: u32 = 1 << 10;

/// First origin bit of the loads.
pub const FIRST_LOAD: u32 = 16;
/// Last origin bit of the loads, shared by all further loads.
pub const LAST_LOAD: u32 = 62;
/// Origin of results that are not evaluated.
pub const OPAQUE: u64 = 1 << 63;

/// A value and its origins.
#[derive(Debug, Clone, Copy, Default)]
pub struct Value {
    pub bits: u64,
    pub origins: u64,
}

impl Value {
    /// A constant.
    pub fn known(bits: u64) -> Self {
        Self { bits, origins: 0 }
    }
}

/// Receives the accesses of a simulated run.
pub trait Observer {
    /// The access at `index` of the program loaded `bytes`; `writers` are the steps that stored them,
    /// with the number of bytes of each.
    fn loaded(&mut self, index: usize, step: u16, bytes: u32, writers: &[(u16, u32)]);
    /// The access at `index` has this address, with these origins.
    fn located(&mut self, index: usize, step: u16, address: u64, origins: u64);
}

/// Registers, flags and memory of the simulated processor.
#[derive(Debug, Default)]
pub struct Machine {
    pub values: [u64; 16],
    pub origins: [u64; 16],
    pub vectors: [[u64; 8]; 32],
    pub vector_origins: [u64; 32],
    pub flags: Flags,
    pub flag_origins: u64,
    pub memory: Shadow,
    pub random: fastrand::Rng,
    segments: [u64; 2],
    pub(super) step: u16,
    /// Origin bit of each access that has loaded unknown memory; else 0.
    pub(super) loads: Vec<u64>,
    /// Number of loads of each access from memory not accessed before.
    pub(super) fresh: Vec<u32>,
    pub(super) next_load: u32,
    /// Addresses and origins of the current instruction's accesses.
    pub(super) located: Vec<(u64, u64)>,
    pub(super) writers: Vec<(u16, u32)>,
    /// Repeated string instructions that ran with an unknown or large count, by index.
    pub unknown_counts: Vec<usize>,
    /// The value of its first load, and then the value to store.
    pub lanes: [u64; 8],
    pub lane_origins: u64,
}

impl Machine {
    /// Sets everything to random values from `seed`, except the given initial values.
    pub fn reset(&mut self, seed: u64, accesses: usize, given: &InitialValues) {
        self.random = fastrand::Rng::with_seed(seed);
        for number in 0..16 {
            self.values[number] = self.random.u64(..);
            self.origins[number] = 1 << number;
        }
        // The ABI aligns the stack pointer and therefore frame pointers.
        self.values[4] &= !15;
        self.values[5] &= !15;
        for (number, value) in given.registers.iter().enumerate() {
            if let Some(value) = value {
                (self.values[number & 15], self.origins[number & 15]) = (*value, 0);
            }
        }
        for number in 0..32 {
            self.unknown_vector(number);
        }
        let base = self.random.u64(..);
        self.segments = [base, base.rotate_left(17)];
        self.memory.reset(self.random.u64(..), given.fill);
        for (address, value) in &given.memory {
            self.memory.initialise(*address, *value);
        }
        self.unknown_flags();
        self.loads.clear();
        self.fresh.clear();
        self.unknown_counts.clear();
        self.loads.resize(accesses, 0);
        self.fresh.resize(accesses, 0);
        (self.next_load, self.step) = (FIRST_LOAD, 0);
    }

    /// Whether the branch back is not taken, independently of the unknown values.
    pub fn rules_out(&self, back: Back) -> bool {
        match back {
            Back::If(condition) => self.flag_origins == 0 && !self.flags.hold(condition),
            Back::Counter => self.origins[1] == 0 && self.values[1] == 0,
        }
    }

    pub(super) fn registers(&self) -> Registers<'_> {
        Registers {
            values: &self.values,
            origins: &self.origins,
            vectors: &self.vectors,
            vector_origins: &self.vector_origins,
            segments: self.segments,
        }
    }

    /// The result of `lea`.
    pub fn compute(&self, address: &Address) -> Value {
        let (bits, origins) = address.compute(&self.registers());
        Value { bits, origins }
    }

    /// Reads `size` bytes of an operand.
    pub fn read(&self, slot: Slot, size: u8) -> Value {
        let value = match slot {
            Slot::Register(number, shift) => Value {
                bits: self.values[usize::from(number & 15)] >> shift,
                origins: self.origins[usize::from(number & 15)],
            },
            Slot::Vector(number) => Value {
                bits: self.vectors[usize::from(number & 31)][0],
                origins: self.vector_origins[usize::from(number & 31)],
            },
            Slot::Value(bits) => Value::known(bits),
            Slot::Memory => Value { bits: self.lanes[0], origins: self.lane_origins },
            Slot::None => Value::default(),
        };
        Value { bits: value.bits & low_bytes(size.into()), ..value }
    }

    /// Writes `size` bytes of an operand: four clear the upper half of a register, fewer keep its
    /// rest. A value for memory is stored at the end of the step.
    pub fn write(&mut self, slot: Slot, size: u8, value: Value) {
        match slot {
            Slot::Register(number, shift) => {
                let number = usize::from(number & 15);
                let mask = low_bytes(size.into());
                if size >= 4 {
                    self.values[number] = value.bits & mask;
                    self.origins[number] = value.origins;
                } else {
                    let old = self.values[number] & !(mask << shift);
                    self.values[number] = old | (value.bits & mask) << shift;
                    self.origins[number] |= value.origins;
                }
            }
            Slot::Memory => {
                self.lanes = [value.bits, 0, 0, 0, 0, 0, 0, 0];
                self.lane_origins = value.origins;
            }
            Slot::Vector(number) => {
                let number = usize::from(number & 31);
                self.vectors[number] = [value.bits, 0, 0, 0, 0, 0, 0, 0];
                self.vector_origins[number] = value.origins;
            }
            Slot::Value(_) | Slot::None => {}
        }
    }

    /// Sets everything that the operation writes to new random values.
    pub fn make_unknown(&mut self, operation: &Operation) {
        let mut general = operation.general;
        while general != 0 {
            let number = general.trailing_zeros() as usize;
            self.values[number] = self.random.u64(..);
            self.origins[number] = OPAQUE;
            general &= general - 1;
        }
        let mut vectors = operation.vectors;
        while vectors != 0 {
            let number = vectors.trailing_zeros() as usize;
            self.unknown_vector(number);
            vectors &= vectors - 1;
        }
        if operation.flags {
            self.unknown_flags();
        }
        if operation.stores {
            let first = self.random.u64(..);
            self.lanes = std::array::from_fn(|i| first.wrapping_mul(2 * i as u64 + 1));
            self.lane_origins = OPAQUE;
        }
    }

    fn unknown_vector(&mut self, number: usize) {
        let first = self.random.u64(..);
        self.vectors[number] = std::array::from_fn(|i| first.wrapping_mul(2 * i as u64 + 1));
        self.vector_origins[number] = OPAQUE;
    }

    fn unknown_flags(&mut self) {
        let bits = self.random.u64(..);
        self.flags = Flags {
            carry: bits & 1 != 0,
            overflow: bits & 2 != 0,
            result: if bits & 4 != 0 { bits } else { 0 },
        };
        self.flag_origins = OPAQUE;
    }

    /// The origins whose values change between iterations.
    pub fn varying(&self) -> u64 {
        let often = self.loads.iter().zip(&self.fresh).filter(|(_, fresh)| **fresh > 1);
        let shared = 1 << LAST_LOAD;
        often.fold(OPAQUE | shared, |all, (bit, _)| all | bit)
    }

    /// The access that an origin bit of a load stands for.
    pub fn origin_of(&self, bit: u64) -> Option<usize> {
        self.loads.iter().position(|b| *b == bit)
    }
}

/// Value and origins of an operand.
fn lanes(m: &Machine, slot: Slot) -> ([u64; 8], u64) {
    match slot {
        Slot::Vector(number) => {
            (m.vectors[usize::from(number & 31)], m.vector_origins[usize::from(number & 31)])
        }
        Slot::Memory => (m.lanes, m.lane_origins),
        other => {
            let Value { bits, origins } = m.read(other, 8);
            ([bits, 0, 0, 0, 0, 0, 0, 0], origins)
        }
    }
}

/// The lowest `bytes` of `lanes`, zero-extended.
fn cut(lanes: [u64; 8], bytes: u8) -> [u64; 8] {
    std::array::from_fn(|i| {
        let left = u32::from(bytes).saturating_sub(8 * i as u32);
        if left == 0 { 0 } else { lanes[i] & low_bytes(left) }
    })
}

/// Evaluates the actions on vectors.
pub fn evaluate(m: &mut Machine, o: &Operation) {
    let [first, second, third] = o.operands;
    let last = if third == Slot::None { second } else { third };
    match o.action {
        Action::VectorMove => {
            // The narrower operand determines the size.
            let bytes = if o.size == 0 { o.from } else { o.size.min(o.from.max(1)) };
            let (value, origins) = lanes(m, second);
            put(m, first, bytes, (cut(value, bytes), origins), false);
        }
        Action::VectorMerge => {
            let bytes = if o.scalar > 0 { o.scalar } else { o.from.min(o.size.max(1)) };
            let (value, origins) = lanes(m, second);
            put(m, first, bytes, (cut(value, bytes), origins), true);
        }
        Action::VectorZero => put(m, first, 64, ([0; 8], 0), false),
        Action::HighLoad => {
            let (loaded, from) = lanes(m, second);
            let (mut value, origins) = lanes(m, first);
            value[1] = loaded[0];
            put(m, first, 16, (cut(value, 16), origins | from), true);
        }
        Action::HighStore => {
            let (value, origins) = lanes(m, second);
            m.write(Slot::Memory, 8, Value { bits: value[1], origins });
        }
        Action::UnpackLow => {
            let ((low, a), (high, b)) = match third {
                Slot::None => (lanes(m, first), lanes(m, second)),
                _ => (lanes(m, second), lanes(m, third)),
            };
            let value = [low[0], high[0], 0, 0, 0, 0, 0, 0];
            put(m, first, 16, (value, a | b), third == Slot::None);
        }
        Action::Insert(lane) => {
            let legacy = matches!(third, Slot::Value(_));
            let (base, inserted) = if legacy { (first, second) } else { (second, last) };
            let ((mut value, a), (new, b)) = (lanes(m, base), lanes(m, inserted));
            value[usize::from(lane & 7)] = new[0];
            put(m, first, 16, (cut(value, 16), a | b), legacy);
        }
        Action::Extract(lane) => {
            let (value, origins) = lanes(m, second);
            m.write(first, 8, Value { bits: value[usize::from(lane & 7)], origins });
        }
        _ => m.make_unknown(o),
    }
}

/// Writes `bytes` of `value`; with `merge`, the rest of a register is preserved.
fn put(m: &mut Machine, slot: Slot, bytes: u8, value: ([u64; 8], u64), merge: bool) {
    let (lanes, origins) = value;
    match slot {
        Slot::Vector(number) => {
            let number = usize::from(number & 31);
            if merge {
                let old = m.vectors[number];
                let low = cut(old, bytes);
                m.vectors[number] = std::array::from_fn(|i| old[i] ^ low[i] | lanes[i]);
                m.vector_origins[number] |= origins;
                if bytes >= 16 {
                    m.vector_origins[number] = origins;
                }
            } else {
                (m.vectors[number], m.vector_origins[number]) = value;
            }
        }
        Slot::Memory => (m.lanes, m.lane_origins) = value,
        register => m.write(register, bytes.clamp(4, 8), Value { bits: lanes[0], origins }),
    }
}
