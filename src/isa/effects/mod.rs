//! Registers, flag groups and memory that an instruction reads and writes, including partial writes
//! and implicit operands. Dependencies, latencies and microbenchmarks all use this one model.
//!
//! | file | concern |
//! |---|---|
//! | `arch_reg` | registers and flag groups as numbers and sets |
//! | `model` | the effects of an instruction as data: [`Effects`] |
//! | `finder` | instruction → [`Effects`]: the order of the steps |
//! | `registers` | registers read and written, and the role of each read |
//! | `flags` | flag groups read and written |
//! | `memory` | memory operands; gathers and scatters lane by lane |
//! | `x87`, `stack` | x87 registers, by instruction and over a region |
//! | `idioms` | zeroing idioms and move elimination |
//!
//! # Corrections of iced-x86
//!
//! Most effects come from iced-x86. This module corrects what it omits or reports differently, per
//! microarchitecture where processors differ. "Measured" corrections are shown on Golden Cove by the
//! blocks of tests/figures/corrections.py; "defined" ones follow from the instruction's definition;
//! "untested" ones rely on their source alone.
//!
//! | instructions | iced-x86 | here | cores | source | evidence |
//! |---|---|---|---|---|---|
//! | cmov of 16 and 64 bits | destination conditionally written | destination is a source operand | all | measured on Emerald Rapids | measured |
//! | bsf, bsr | destination conditionally written | destination merged: a true dependency | all | measured on Emerald Rapids | measured |
//! | pcmpeq* with equal registers | reads the register | does not read it | all known | measured on Emerald Rapids | measured |
//! | pcmpgt* with equal registers | reads the register | does not read it | all known | measured on Emerald Rapids | measured |
//! | psubs*, psubus* with equal registers | reads the register | does not read it | Haswell and later, Zen | measured on Emerald Rapids | measured |
//! | pcmpeq*, pcmpgt* with equal registers into a mask register | reads the register | does not read it | all known | measured on Emerald Rapids | measured |
//! | zeroing idioms under a mask | xor and sub do not read the register | reads the register | Golden Cove | measured on Emerald Rapids | measured |
//! | pandn, andnps, andnpd with equal registers | reads the register | does not read it | Zen | AMD Software Optimization Guide for family 19h; Agner Fog, microarchitecture | untested |
//! | pandn, andnps, andnpd with equal registers | reads the register | reads the register | Intel | measured on Emerald Rapids | measured |
//! | vpternlog with 0xff | reads all three sources | reads all three sources | Golden Cove | measured on Emerald Rapids | measured |
//! | kxor, kxnor with equal registers | reads the register | does not read it | Golden Cove | measured on Emerald Rapids | measured |
//! | kandn with equal registers | reads the register | reads the register | Golden Cove | measured on Emerald Rapids | measured |
//! | sbb with equal registers | reads the register and CF | only CF | Zen | AMD Software Optimization Guide for family 19h; Agner Fog, microarchitecture | untested |
//! | sbb with equal registers | reads the register and CF | reads the register and CF | Intel | measured on Emerald Rapids | measured |
//! | cmp with equal registers | reads the register | does not read it | Zen | AMD Software Optimization Guide for family 19h; Agner Fog, microarchitecture | untested |
//! | xor, sub with equal registers, 8 or 16 bits | only writes the register | reads the register | all | measured on Emerald Rapids | measured |
//! | writes to al, ax | writes that part | rest of rax merged: a true dependency | all | measured on Emerald Rapids | measured |
//! | writes to ah, bh, ch, dh | writes that part | rest merged: a true dependency, 3 cycles on Golden Cove | all | measured on Emerald Rapids | measured |
//! | shifts and rotates by cl | write flags | old flags are a true dependency, as a count of 0 leaves them | Intel | measured on Emerald Rapids | measured |
//! | shifts and rotates by cl | write flags | old flags are no dependency, though a count of 0 leaves them | Zen | measured on a Zen 3 | untested |
//! | flags | each flag separately | groups CF, OF and SF-ZF-AF-PF; inc and dec leave CF, adcx leaves OF | all | measured on Emerald Rapids | measured |
//! | bt, bts, btr, btc | SF, AF, PF, OF undefined | ZF is unchanged, so the group SF-ZF-AF-PF counts as not written | all | Intel SDM vol. 2 | defined |
//! | cmpxchg8b and others that set ZF alone | ZF written | the rest of its group is merged | all | Intel SDM vol. 2 | defined |
//! | x87 and MMX | st and mm registers | one register for all, reported as not modelled | all | Intel SDM vol. 2 | defined |
//! | vzeroupper | reads and writes all vectors | none | all known | measured on Emerald Rapids | measured |
//! | bt, bts, btr, btc of memory by a register | base and index | the register is part of the address; access size unknown | all | Intel SDM vol. 2 | defined |
//! | repeated string instructions | size unknown | size unknown, conditional, reported as not modelled | all | Intel SDM vol. 2 | defined |
//! | gathers and scatters | one access | one access per lane, conditional | all | Intel SDM vol. 2 | defined |
//! | vmaskmov, maskmovdqu, masked loads and stores | unconditional | conditional | all | Intel SDM vol. 2 | defined |
//! | merge-masking | destination read | merged: a true dependency | AVX-512 | measured on Emerald Rapids | measured |
//! | cvtsi2sd, sqrtsd, cvtss2sd, movsd, pinsrd | destination read | merged: a true dependency | all | measured on Emerald Rapids | measured |
//! | popcnt | no dependency on the destination | false dependency on the destination | Haswell to Cascade Lake | uops.info | untested |
//! | lzcnt, tzcnt | no dependency on the destination | false dependency on the destination | Haswell and Broadwell | uops.info | untested |
//! | popcnt, lzcnt, tzcnt | no dependency on the destination | no dependency | Golden Cove | measured on Emerald Rapids | measured |
//! | vpermd, vpermq, vpmullq | no dependency on the destination | no dependency (LLVM models one) | Golden Cove | measured on Emerald Rapids | measured |
//! | mov of registers, 32 or 64 bits | – | may be eliminated at rename | all known except Ice Lake | measured on Emerald Rapids | measured |
//! | mov of registers, 32 or 64 bits | – | executed (elimination disabled by microcode) | Ice Lake | uops.info | untested |
//! | movzx from a low byte | – | may be eliminated at rename | Intel except Ice Lake | measured on Emerald Rapids | measured |
//! | vector moves of registers | – | may be eliminated at rename | all known | measured on Emerald Rapids | measured |
//! | add, sub of 8 bits, inc, dec, lea of a base; 64 bits | – | may be eliminated at rename | Golden Cove | measured on Emerald Rapids | measured |
//! | push, pop, call, ret | rsp read and written | rsp is updated by the stack engine in 0 cycles | all | measured on Emerald Rapids | measured |
//! | legacy SSE writes | 128 bits written | upper part merged; no dependency while it is zero | all known | Agner Fog, microarchitecture | untested |
//! | xchg | both read and written | each operand's value flows only to the other | all | Intel SDM vol. 2 | defined |
//! | xadd | both read and written | the second operand becomes the old first operand | all | Intel SDM vol. 2 | defined |
//! | pop rsp | rsp read and written | rsp becomes the loaded value | all | Intel SDM vol. 2 | defined |
//! | lods, stos, movs, scas, cmps | rsi, rdi and DF read | pointers advance by a constant, in the direction of DF | all | Intel SDM vol. 2 | defined |
//! | ldmxcsr, stmxcsr | no register | MXCSR | all | Intel SDM vol. 2 | defined |

mod arch_reg;
mod finder;
mod flags;
mod idioms;
mod memory;
mod model;
mod registers;
pub(crate) mod stack;
#[cfg(test)]
mod tests;
mod x87;

pub use arch_reg::{ArchReg, ArchRegSet};
pub use finder::Finder;
pub use idioms::tied_operands;
pub use model::{Access, Effects, Paths, Read, Role, Write};
