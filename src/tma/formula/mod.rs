//! The formula language of the tables: parsed once (`parse`), evaluated without allocation (`program`).
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

#[cfg(test)]
mod tests {
    //! Formulas as the vendors write them, against hand calculation.

    use super::*;

    /// Events A=1, B=2, C=4, Z=0; anything else is unknown.
    struct Values;

    impl Resolve for Values {
        fn name(&self, name: &str) -> Option<Leaf> {
            let names =
                ["A", "B", "C", "Z", "IDQ.MS_UOPS:c1:e1", "4K_Aliasing", "FetchBubbles[≥MIW]"];
            names.iter().position(|n| *n == name).map(|i| Leaf::Event(i as u16))
        }

        fn constant(&self, name: &str) -> Option<Leaf> {
            (name == "SMT_ON").then_some(Leaf::Const(0))
        }
    }

    struct Given(f64);

    impl Inputs for Given {
        fn value(&mut self, leaf: Leaf) -> f64 {
            match leaf {
                Leaf::Event(i) => [1.0, 2.0, 4.0, 0.0, 5.0, 6.0, 7.0][usize::from(i)],
                Leaf::Const(_) => self.0,
                Leaf::Node(_) => f64::NAN,
            }
        }
    }

    fn eval_smt(text: &str, smt: f64) -> f64 {
        let expr = parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        let program = Program::compile(&expr, &Values).unwrap();
        program.eval(&mut Given(smt))
    }

    fn eval(text: &str) -> f64 {
        eval_smt(text, 0.0)
    }

    #[test]
    fn arithmetic_binds_as_in_mathematics() {
        assert_eq!(eval("A + B * C"), 9.0);
        assert_eq!(eval("(A + B) * C"), 12.0);
        assert_eq!(eval("C - B - A"), 1.0);
        assert_eq!(eval("C / B / B"), 1.0);
        assert_eq!(eval("-A + B"), 1.0);
        assert_eq!(eval("2e3 + 1.5e-1"), 2000.15);
        assert_eq!(eval("min(A, B, C) + max(A, C)"), 5.0);
    }

    #[test]
    fn all_three_threshold_dialects_are_understood() {
        for text in
            ["( A > 0.5 ) & ( B > 1 )", "A > 0.5 & B > 1", "A > 0.5 && B > 1", "A > 0.5 and B > 1"]
        {
            assert_eq!(eval(text), 1.0, "{text}");
        }
        assert_eq!(eval("A > 1 | B > 1"), 1.0);
        assert_eq!(eval("A > 1 & B > 1"), 0.0);
    }

    #[test]
    fn the_branch_not_taken_does_not_matter() {
        assert_eq!(eval_smt("( B / 2 ) if #SMT_ON else C", 1.0), 1.0);
        assert_eq!(eval_smt("( B / 2 ) if #SMT_ON else C", 0.0), 4.0);
        assert_eq!(eval("A / Z if #SMT_ON else B"), 2.0);
        let expr = parse("A + ( B if #SMT_ON else C ) * Z").unwrap();
        let program = Program::compile(&expr, &Values).unwrap();
        let smt = Leaf::Const(0);
        let events = |ids: [u16; 3]| ids.map(Leaf::Event).to_vec();
        assert_eq!(program.leaves_given(smt, 1.0), events([0, 1, 3]));
        assert_eq!(program.leaves_given(smt, 0.0), events([0, 2, 3]));
    }

    #[test]
    fn division_by_zero_is_undefined_and_spreads_but_a_share_of_nothing_is_nothing() {
        assert!(eval("A / Z").is_nan());
        assert!(eval("A + A / Z").is_nan());
        assert!(eval("max(0, A / Z)").is_nan());
        assert!(eval("A / Z > 1").is_nan());
        assert!(eval("A if Z / Z else B").is_nan());
        assert_eq!(eval("Z * (A / Z)"), 0.0);
    }

    #[test]
    fn names_keep_modifiers_bounds_and_leading_digits() {
        assert_eq!(eval("IDQ.MS_UOPS:c1:e1 + 4K_Aliasing * FetchBubbles[≥MIW]"), 47.0);
        let mut names = Vec::new();
        let text = "OCR.DEMAND_RFO.L3_MISS:ocr_msr_val=0x103b800002 / 4K_Aliasing";
        parse(text).unwrap().names(&mut |n| names.push(n.to_owned()));
        assert_eq!(names, ["OCR.DEMAND_RFO.L3_MISS:ocr_msr_val=0x103b800002", "4K_Aliasing"]);
    }

    #[test]
    fn printing_and_parsing_again_gives_the_same_tree() {
        for text in [
            "A - (B - C)",
            "(A if B > C else C) / 2",
            "A if B else C if Z else 1",
            "-(A + B) * -C",
            "A / (B * C)",
            "(A > B) & (B > C | A > C)",
            "min(A, max(B, C + 1))",
            "(A > B) == 1",
        ] {
            let expr = parse(text).unwrap();
            let printed = expr.to_string();
            assert_eq!(parse(&printed).unwrap(), expr, "{text} printed as {printed}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let at = |text: &str| parse(text).unwrap_err();
        assert_eq!(at("A + ").at, 4);
        assert_eq!(at("A B").at, 2);
        assert_eq!(at("A $ B").at, 2);
        assert_eq!(at("A > B > C").at, 6);
        assert!(at("min(A)").message.contains("`,`"));
        assert!(at("A if B").message.contains("`else`"));
        assert!(at("#").message.contains("constant"));
        let unknown = Program::compile(&parse("A + Q").unwrap(), &Values);
        assert_eq!(unknown, Err(Uncompiled::Name("Q".to_owned())));
    }

    #[test]
    fn monsters_are_refused_not_followed() {
        assert!(parse(&"(".repeat(10_000)).is_err());
        assert!(parse(&"A+".repeat(100_000)).is_err());
        assert!(parse(&"-".repeat(16_000)).is_err());
        let wide = format!("{}A", "A+".repeat(2_000));
        let expr = parse(&wide).unwrap();
        assert_eq!(expr.to_string().matches('A').count(), 2_001);
        let deep = format!("{}A{}", "(A+".repeat(63), ")".repeat(63));
        assert!(Program::compile(&parse(&deep).unwrap(), &Values).is_ok());
    }
}
