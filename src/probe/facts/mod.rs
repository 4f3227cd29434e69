//! What is known of the code that is to be probed, from its ELF file alone.
//!
//! | file | concern |
//! |---|---|
//! | `module` | an ELF file: its code, and why none of it is probed |
//! | `entered` | addresses that may be reached from elsewhere, over-approximated |
//! | `exceptions` | landing pads of C++ and Rust exceptions |
//! | `function` | one function: blocks, edges and instructions |
//! | `flags` | which flags are live before each instruction |

mod entered;
mod exceptions;
mod flags;
mod function;
mod module;

pub use flags::ARITHMETIC;
pub use function::{Block, Exit, Function};
pub use module::Module;
