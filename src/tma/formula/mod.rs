//! The formula language of the tables: parsed once, evaluated without allocation.
//!
//! ```text
//! expr  := or [ "if" or "else" expr ]          value IF condition ELSE other
//! or    := and { ("or" | "|") and }             and := cmp { ("and" | "&") cmp }
//! cmp   := sum [ ("<" | ">" | "<=" | ">=" | "==") sum ]
//! sum   := term { ("+" | "-") term }            term := unary { ("*" | "/") unary }
//! unary := "-" unary | number | name | "#"constant | "(" expr ")"
//!        | ("min" | "max") "(" expr "," expr … ")"
//! ```
//!
//! A name is an event (`IDQ.MS_UOPS:c1`, `MemStalls.L1miss`, `FetchBubbles[≥MIW]`) or a node of
//! the same table (`Fetch_Latency`, `4K_Aliasing`). Conditions are 1 and 0. Division by zero is
//! undefined (NaN) and spreads, except that 0 × undefined is 0: the share of a class that never
//! occurred does not matter to the cost of that class.
//!
//! # Example
//!
//! ```
//! use std::collections::HashMap;
//! use tma::formula::{Inputs, Leaf, Program, parse};
//!
//! /// Counts by event index.
//! struct Counted([f64; 2]);
//!
//! impl Inputs for Counted {
//!     fn value(&mut self, leaf: Leaf) -> f64 {
//!         if let Leaf::Event(e) = leaf { self.0[usize::from(e)] } else { f64::NAN }
//!     }
//! }
//!
//! let names = [("STALLS", 0), ("CYCLES", 1)].map(|(name, e)| (name.to_owned(), Leaf::Event(e)));
//! let share = Program::compile(&parse("STALLS / CYCLES")?, &HashMap::from(names))?;
//! assert_eq!(share.eval(&mut Counted([30.0, 120.0])), 0.25);
//! assert!(share.eval(&mut Counted([30.0, 0.0])).is_nan(), "a division by zero is undefined");
//!
//! assert_eq!(parse("STALLS + * CYCLES").unwrap_err().at, 9, "the offset of the `*`");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod expr;
mod parse;
mod program;
#[cfg(test)]
mod tests;

pub use expr::{BinOp, Expr};
pub use parse::{FormulaError, Uncompiled, parse, parse_up_to};
pub use program::{Inputs, Leaf, Program, Resolve, STACK};
