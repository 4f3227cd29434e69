//! Machine code named on the command line, and initial values for it.
//!
//! | file | concern |
//! |---|---|
//! | `help` | how blocks are named, for `--help` |
//! | `read` | files and standard input, up to a limit |
//! | `named` | blocks by their bytes, assembly, or file |
//! | `program` | blocks by their place in a program |
//! | `initial_values` | `--registers` and `--init` |

mod help;
pub mod initial_values;
pub mod named;
pub mod program;
pub mod read;

pub use help::INPUTS;
