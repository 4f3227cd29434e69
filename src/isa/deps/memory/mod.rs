//! Dependencies through memory, found by simulation with random values: unknown registers and memory
//! get random values, integer arithmetic is evaluated, and accesses whose addresses coincide in all
//! runs are dependent.
//!
//! | file | concern |
//! |---|---|
//! | `settings`, `dependency` | parameters and results |
//! | `finder` | the runs, and the dependencies on which they agree |
//! | `action`, `select_action`, `operation`, `address`, `program` | the region, decoded for fast evaluation |
//! | `machine`, `step`, `repeat`, `evaluate`, `vector`, `arithmetic` | the simulator |
//! | `shadow` | simulated memory: the value and last writer of each byte |
//! | `tally` | counts of the stores that each load reads |
//! | `alias` | accesses that may alias |
//! | `hash` | SplitMix64 |

mod action;
mod address;
mod alias;
mod arithmetic;
mod dependency;
mod evaluate;
mod finder;
mod hash;
mod machine;
mod operation;
mod program;
mod repeat;
mod select_action;
mod settings;
mod shadow;
mod step;
mod tally;
mod vector;

pub use alias::{AliasClass, MayAlias, Origin, may_alias_pairs};
pub use dependency::{MemoryDependencies, MemoryDependency};
pub use finder::Finder;
pub use settings::{InitialValues, MAX_RUNS, MAX_WINDOW, Settings};
