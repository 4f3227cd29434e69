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

mod parse;
mod program;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use std::fmt;

pub use parse::{FormulaError, Uncompiled, parse, parse_up_to};
pub use program::{Inputs, Leaf, Program, Resolve, STACK};

/// A binary operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum BinOp {
    Add,
    Sub,
    Mul,
    Div,
    Lt,
    Gt,
    Le,
    Ge,
    Eq,
    And,
    Or,
    Min,
    Max,
}

impl BinOp {
    /// Binding strength; larger binds tighter. `min`/`max` are calls and never need parentheses.
    fn precedence(self) -> u8 {
        match self {
            BinOp::Or => 1,
            BinOp::And => 2,
            BinOp::Lt | BinOp::Gt | BinOp::Le | BinOp::Ge | BinOp::Eq => 3,
            BinOp::Add | BinOp::Sub => 4,
            BinOp::Mul | BinOp::Div => 5,
            BinOp::Min | BinOp::Max => 7,
        }
    }

    fn symbol(self) -> &'static str {
        match self {
            BinOp::Add => "+",
            BinOp::Sub => "-",
            BinOp::Mul => "*",
            BinOp::Div => "/",
            BinOp::Lt => "<",
            BinOp::Gt => ">",
            BinOp::Le => "<=",
            BinOp::Ge => ">=",
            BinOp::Eq => "==",
            BinOp::And => "and",
            BinOp::Or => "or",
            BinOp::Min => "min",
            BinOp::Max => "max",
        }
    }
}

/// A parsed formula. `Display` writes it back with the fewest parentheses.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A literal.
    Num(f64),
    /// An event or a node, not yet resolved.
    Name(String),
    /// A constant of the run, written `#NAME`.
    Const(String),
    /// Negation.
    Neg(Box<Expr>),
    /// A binary operation, a comparison, `min` or `max`.
    Bin(BinOp, Box<Expr>, Box<Expr>),
    /// `then if cond else other`.
    If {
        /// The condition; any value but 0 is true.
        cond: Box<Expr>,
        /// The value where it holds.
        then: Box<Expr>,
        /// The value elsewhere.
        other: Box<Expr>,
    },
}

impl Expr {
    /// Calls `visit` on every name, left to right, repeats included.
    pub fn names<'a>(&'a self, visit: &mut dyn FnMut(&'a str)) {
        match self {
            Expr::Num(_) | Expr::Const(_) => {}
            Expr::Name(n) => visit(n),
            Expr::Neg(e) => e.names(visit),
            Expr::Bin(_, a, b) => {
                a.names(visit);
                b.names(visit);
            }
            Expr::If { cond, then, other } => {
                then.names(visit);
                cond.names(visit);
                other.names(visit);
            }
        }
    }

    fn precedence(&self) -> u8 {
        match self {
            Expr::If { .. } => 0,
            Expr::Bin(op, ..) => op.precedence(),
            Expr::Neg(_) => 6,
            Expr::Num(_) | Expr::Name(_) | Expr::Const(_) => 7,
        }
    }

    fn write_at(&self, f: &mut fmt::Formatter<'_>, least: u8) -> fmt::Result {
        if self.precedence() < least {
            f.write_str("(")?;
            self.write_at(f, 0)?;
            return f.write_str(")");
        }
        match self {
            Expr::Num(n) => write!(f, "{n}"),
            Expr::Name(n) => f.write_str(n),
            Expr::Const(n) => write!(f, "#{n}"),
            Expr::Neg(e) => {
                f.write_str("-")?;
                e.write_at(f, 6)
            }
            Expr::Bin(op @ (BinOp::Min | BinOp::Max), a, b) => {
                write!(f, "{}(", op.symbol())?;
                a.write_at(f, 0)?;
                f.write_str(", ")?;
                b.write_at(f, 0)?;
                f.write_str(")")
            }
            Expr::Bin(op, a, b) => {
                let p = op.precedence();
                // Comparisons do not chain; + and * reassociate only on the left, so that
                // the text parses back to the very same tree.
                a.write_at(f, if p == 3 { p + 1 } else { p })?;
                write!(f, " {} ", op.symbol())?;
                b.write_at(f, p + 1)
            }
            Expr::If { cond, then, other } => {
                then.write_at(f, 1)?;
                f.write_str(" if ")?;
                cond.write_at(f, 1)?;
                f.write_str(" else ")?;
                other.write_at(f, 0)
            }
        }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_at(f, 0)
    }
}
