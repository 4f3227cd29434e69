//! The control-flow graph of a function: basic blocks, edges, loops.
//!
//! | file | concern |
//! |---|---|
//! | `graph` | the control-flow graph as data |
//! | `memory` | access to the program's memory |
//! | `analysis` | the analysis of one function, from the steps below |
//! | `disassembly` | bytes → instructions; bytes that do not decode |
//! | `partition` | instructions → blocks and edges |
//! | `jump_tables` | targets of indirect jumps, read from memory and checked |
//! | `slice`, `slice_state` | backward slice from an indirect jump to the origin of its target |
//! | `terms` | sums of multiples of values |
//! | `transfer`, `value` | effects of instructions on symbolic values; symbolic values |
//! | `iteration` | one iteration of a loop body in terms of the registers at its start |
//! | `dominators`, `loops` | dominators and natural loops |
//! | `stored` | a graph from parts that another process stored |
//! | `image` | a program's memory, from its ELF file |
//! | `no_return` | functions known not to return |
//!
//! Unknown edges are marked, never guessed. Time and memory are bounded by the size of the function.
//! Bytes that do not decode are listed in [`Flow::undecoded`].

mod analysis;
mod disassembly;
mod dominators;
mod graph;
mod image;
mod iteration;
mod jump_tables;
mod loops;
mod memory;
mod no_return;
mod partition;
mod slice;
mod slice_state;
mod stored;
mod terms;
#[cfg(test)]
mod tests;
mod transfer;
mod value;

pub use analysis::{blocks, decoded_flow, flow};
pub use graph::{BasicBlock, Edge, Flow, Loop};
pub use image::{Image, NoImage};
pub use iteration::{Exit, Iteration, Linear, LinearAccess, Loaded, Term};
pub use memory::Memory;
pub use stored::stored;
pub use terms::merged;
