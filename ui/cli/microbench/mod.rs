//! `tdtool microbench`: microbenchmarks of instructions.

mod arguments;
mod calibrate;
mod run;

pub use arguments::MicrobenchArgs;
pub use run::run;
