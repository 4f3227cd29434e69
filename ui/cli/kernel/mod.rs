//! `tdtool kernel`: microbenchmarks of instructions.

mod arguments;
mod calibrate;
mod run;

pub use arguments::KernelArgs;
pub use run::run;
