//! Words of a command line, to be shown.

pub use tma::shell::quoted;
