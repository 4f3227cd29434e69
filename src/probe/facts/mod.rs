//! What is known of the code that is to be probed, from its ELF file alone.
//!
//! | file | concern |
//! |---|---|
//! | `module` | an ELF file: its code, and why none of it is probed |
//! | `addresses` | sets of addresses |
//! | `allocators` | functions that give memory |
//! | `no_code` | why a file, or a function of it, has no code that can be probed |
//! | `entered` | addresses that may be reached from elsewhere, over-approximated |
//! | `exceptions` | landing pads of C++ and Rust exceptions |
//! | `block` | a basic block |
//! | `function` | one function: blocks, edges and instructions |
//! | `names` | the functions of a file |
//! | `padding` | bytes that nothing executes, after ways out |
//! | `frames` | where callers are on the stack |
//! | `flags` | which flags an instruction, or other code, reads and replaces |
//! | `landings` | where its unknown jumps may lead to |
//! | `live` | which flags are live before each instruction of a function |
//! | `static_probes` | the static probes (USDT) of a file |

mod addresses;
mod allocators;
mod block;
mod entered;
mod exceptions;
mod flags;
mod frames;
mod function;
mod landings;
mod live;
mod module;
mod names;
mod no_code;
mod padding;
mod static_probes;

pub use addresses::Addresses;
pub use allocators::{Allocator, Call, allocators};
pub use block::{Block, Exit};
pub use flags::ARITHMETIC;
pub use frames::{Base, Frame, Frames};
pub use function::{Function, Loop};
pub use module::Module;
pub use names::{Named, functions};
pub use no_code::NoCode;
pub use static_probes::{StaticProbe, static_probes};
