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
