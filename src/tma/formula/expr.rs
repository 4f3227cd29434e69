//! A parsed formula as a tree, and its text.

use serde::{Deserialize, Serialize};
use std::fmt;

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
    pub(super) fn precedence(self) -> u8 {
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
