//! Makes a block runnable: initial values, mapped pages and an address trace.
//!
//! | file | concern |
//! |---|---|
//! | `discover`, `run_setup` | entry points and result of the search |
//! | `value_search` | the order in which values are tried |
//! | `hill_climbing`, `proposals` | changes of one input of the failing instruction at a time |
//! | `cache_fit` | values that keep a runnable block within the L1 data cache |
//! | `traced_run`, `completed_run` | one traced run and its results |
//! | `stored` | values of the traced registers around an instruction |
//! | `masks` | masked accesses: selected elements, and pages |
//! | `trace`, `failure` | memory accesses of a run; reasons of failures |

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
