//! What machine code means, without running it.
//!
//! | module | concern |
//! |---|---|
//! | [`code`] | bytes, ELF files and assembly → blocks of instructions |
//! | [`effects`] | what an instruction reads and writes |
//! | [`flow`] | functions → basic blocks, loops |
//! | [`latency`] | cycles from an operand to a result, with their source |
//! | [`deps`] | dependencies through registers, flags and memory; recurrences |

pub mod code;
pub mod deps;
pub mod effects;
pub mod flow;
pub mod latency;

/// The core of a shipped table, for tests; of `None` nothing is known.
#[cfg(test)]
fn test_core(uarch: Option<&str>) -> tma::Core {
    uarch.map_or_else(tma::Core::default, |name| {
        tma::Core::modelled(&events::library(), name).expect("a shipped table")
    })
}
