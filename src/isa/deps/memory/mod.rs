//! Dependencies through memory, by the method of random values: unknown registers and memory get
//! random values, integer arithmetic is evaluated, and two addresses that come out equal are the
//! same place.
//!
//! | file | concern |
//! |---|---|
//! | `choose`, `operation`, `address`, `program` | instructions made ready to be evaluated |
//! | `arithmetic` | results and flags |
//! | `machine`, `evaluate`, `vector` | the state, and what each action does to it |
//! | `shadow` | memory: values, and who wrote which byte |
//! | `tally` | who reads whom how often |
//! | `alias` | accesses of which nothing is known but that they might meet |
//! | `mix` | bits spread over a word |

mod action;
mod address;
mod alias;
mod arithmetic;
mod choose;
mod evaluate;
mod finder;
mod found;
mod machine;
mod mix;
mod operation;
mod program;
mod settings;
mod shadow;
mod step;
mod tally;
mod vector;

pub use alias::{Class, Origin, pairs};
pub use finder::Finder;
pub use found::{Carried, Found};
pub use settings::{Given, LONGEST_WINDOW, MOST_RUNS, Settings};
