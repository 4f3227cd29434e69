//! Static analysis of x86-64 machine code: nothing here executes the code.
//!
//! | module | concern |
//! |---|---|
//! | [`code`] | bytes and assembly text → blocks of instructions |
//! | [`effects`] | registers, flags and memory that an instruction reads and writes |
//! | [`flow`] | functions → basic blocks and loops |
//! | [`elf`] | headers, build-id and unwind table of ELF files |
//! | [`program`] | ELF files: functions, blocks and loops by the places that a user names |
//! | [`latency`] | latencies in core cycles from an operand to a result, each with its source |
//! | [`names`] | names of instructions, registers and architectures |
//! | [`ports`] | µops and the ports that they can use; the throughput bound of the ports |
//! | [`deps`] | dependencies through registers, flags and memory; loop-carried latency |

pub mod code;
pub mod deps;
pub mod effects;
pub mod elf;
pub mod flow;
pub mod latency;
pub mod names;
pub mod ports;
pub mod program;

/// The core with the shipped event table `uarch`, for tests; an unknown core for `None`.
#[cfg(test)]
fn test_core(uarch: Option<&str>) -> tma::Core {
    uarch.map_or_else(tma::Core::default, |name| {
        tma::Core::modelled(&events::library(), name).expect("a shipped table")
    })
}
