//! Makes a block runnable: initial values, mapped pages and an address trace.
//!
//! | file | concern |
//! |---|---|
//! | `discover`, `run_setup` | entry points of the search, and its result |
//! | `value_search` | the order in which values are tried |
//! | `hill_climbing`, `proposals` | one change at a time, by what the failing instruction depends on |
//! | `cache_fit` | values that keep a runnable block within the L1 data cache |
//! | `traced_run`, `completed_run` | one traced run, and what it shows |
//! | `stored` | values of the traced registers around an instruction |
//! | `masks` | what masked accesses leave out, and the pages they may access |
//! | `trace`, `failure` | memory accesses of a run, why it failed |

pub(crate) mod cache_fit;
pub(crate) mod completed_run;
pub(crate) mod discover;
pub(crate) mod failure;
pub(crate) mod hill_climbing;
pub(crate) mod masks;
pub(crate) mod proposals;
pub(crate) mod run_setup;
pub(crate) mod stored;
pub(crate) mod trace;
pub(crate) mod traced_run;
pub(crate) mod value_search;
