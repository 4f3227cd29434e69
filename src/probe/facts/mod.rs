//! Analysis of the code to be probed, from its ELF file alone.
//!
//! | file | concern |
//! |---|---|
//! | `module` | the code of an ELF file, and sets of addresses |
//! | `names` | its functions, allocators and static probes (USDT) |
//! | `unwind` | landing pads of exceptions, and positions of callers on the stack |
//! | `no_code` | why a file or function has no code that can be probed |
//! | `entered` | addresses that may be reached from elsewhere, over-approximated |
//! | `function` | one function: blocks, edges and instructions; padding after it |
//! | `machine_blocks` | blocks of LLVM's code generator, by their numbers |
//! | `landings` | possible targets of unknown jumps |
//! | `flags` | flags that are read, replaced, and live before each instruction |

mod entered;
mod flags;
mod function;
mod landings;
mod machine_blocks;
mod module;
mod names;
mod no_code;
mod unwind;

pub use flags::ARITHMETIC;
pub use function::{Block, Exit, Function, Loop};
pub use machine_blocks::{MachineBlock, machine_blocks};
pub use module::{Addresses, Module};
pub use names::{Allocator, Call, Named, StaticProbe, allocators, functions, static_probes};
pub use no_code::NoCode;
pub use unwind::{Base, Frame, Frames};
