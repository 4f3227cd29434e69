//! Functions → basic blocks, loops: the control-flow graph of one function.
//!
//! | file | concern |
//! |---|---|
//! | `graph`, `memory` | the control-flow graph as data; the program's memory |
//! | `analysis` | the control flow of one function |
//! | `sweep` | bytes → instructions; what is no code |
//! | `cut` | instructions → blocks and edges |
//! | `tables` | the targets of indirect jumps, read and checked |
//! | `slice`, `state` | backwards from a jump to where its target comes from |
//! | `effects`, `value` | what instructions compute, as far as a jump's target needs it |
//! | `dominators`, `loops` | dominators, natural loops |
//! | `image` | the memory of a program, from its ELF file |
//! | `no_return` | functions known not to return |
//!
//! What cannot be found is marked, never guessed. Work and memory are bounded by the size of the
//! function; bytes that are no code end in [`Flow::undecoded`].

mod analysis;
mod cut;
mod dominators;
mod effects;
mod graph;
mod image;
mod loops;
mod memory;
mod no_return;
mod slice;
mod state;
mod sweep;
mod tables;
#[cfg(test)]
mod tests;
mod value;

pub use analysis::{blocks, flow};
pub use graph::{BasicBlock, Edge, Flow, Loop};
pub use image::Image;
pub use memory::Memory;
