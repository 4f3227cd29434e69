//! Analysis of the code to be probed, from its ELF file alone.
//!
//! | file | concern |
//! |---|---|
//! | `module` | the code of an ELF file |
//! | `addresses` | sets of addresses |
//! | `allocators` | functions that allocate or free memory |
//! | `no_code` | why a file or function has no code that can be probed |
//! | `entered` | addresses that may be reached from elsewhere, over-approximated |
//! | `exceptions` | landing pads of C++ and Rust exceptions |
//! | `block` | a basic block |
//! | `function` | one function: blocks, edges and instructions |
//! | `names` | the functions of a file |
//! | `padding` | bytes after function exits that nothing executes |
//! | `frames` | positions of callers on the stack |
//! | `flags` | flags that instructions or other functions read and replace |
//! | `landings` | possible targets of unknown jumps |
//! | `live` | flags live before each instruction of a function |
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
