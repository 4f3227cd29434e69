//! Initial values: what registers and memory hold when a run starts.
//!
//! | file | concern |
//! |---|---|
//! | `init` | `--init`: values chosen by hand |
//! | `snapshot`, `no_path` | registers and memory of a running program, the path of a loop |

mod init;
mod no_path;
mod snapshot;

pub use init::{Init, REGISTERS};
pub use no_path::NoPath;
pub use snapshot::{LoopPath, Snapshot};

use serde::{Deserialize, Serialize};

/// The usual constant: small enough to be a mappable address, also after sums and shifts.
pub const CONSTANT: u64 = 0x1234_5600;

/// One set of initial values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Values {
    /// General-purpose registers in encoding order: rax rcx rdx rbx rsp rbp rsi rdi r8 … r15.
    pub registers: [u64; 16],
    /// Every eight bytes of memory.
    pub memory: u64,
    /// Every eight bytes of the vector registers.
    pub vector: u64,
}

impl Default for Values {
    fn default() -> Self {
        Self { registers: [CONSTANT; 16], memory: CONSTANT, vector: FLOATS }
    }
}

/// 1.0 twice as single precision, a normal number as double precision.
const FLOATS: u64 = 0x3f80_0000_3f80_0000;

const RDX: usize = 2;
const RSP: usize = 4;

/// The sets, in order of use. The first is the paper's.
pub fn sets() -> Vec<Values> {
    let first = Values::default();
    let with = |change: &dyn Fn(&mut Values)| {
        let mut values = first.clone();
        change(&mut values);
        values
    };
    vec![
        // Whole and half words of memory are both addresses.
        with(&|v| v.memory = 0x0000_1240_0000_1240),
        // Distinct registers: a difference of two is no null address.
        with(&|v| (0..16).for_each(|r| v.registers[r] = CONSTANT + 0x10_0040 * r as u64)),
        // Loaded values are 0: an index, a divisor's upper half.
        with(&|v| v.memory = 0),
        // Division: the upper half of the dividend is 0.
        with(&|v| v.registers[RDX] = 0),
        // As a function finds its stack: 8 below a multiple of 16.
        with(&|v| v.registers[RSP] = CONSTANT + 8),
        with(&|v| v.registers = [CONSTANT + 8; 16]),
        // Small loaded values: sums with an address stay near it.
        with(&|v| v.memory = 0x40),
        // Addresses in vectors (gathers).
        with(&|v| v.vector = CONSTANT),
        // Small registers: scaled and multiplied values stay addresses.
        with(&|v| v.registers = [0x1_0000; 16]),
        // Larger ones: what is subtracted from them leaves an address.
        with(&|v| {
            v.registers = [0x1234_5678_0000; 16];
            v.memory = 0x10_0000;
        }),
    ]
    .into_iter()
    .fold(vec![first.clone()], |mut all, v| {
        all.push(v);
        all
    })
}
