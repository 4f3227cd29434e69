//! Tokens → [`Expr`], by recursive descent with a depth limit.

use super::error::FormulaError;
use super::expr::{BinOp, Expr};
use super::lex::{Token, tokens};

/// Deepest nesting accepted; the vendors' deepest expanded formula has 21.
const MAX_DEPTH: usize = 64;

/// Most tokens accepted: a chain of `+` is a tree as deep as the chain is long, and trees are
/// walked by recursion. The vendors' longest formula has 287.
const MAX_TOKENS: usize = 4096;

/// Parses a formula.
///
/// # Errors
/// The place and what was expected there.
pub fn parse(text: &str) -> Result<Expr, FormulaError> {
    parse_up_to(text, MAX_TOKENS)
}

/// As [`parse`], for a trusted text of up to `most` tokens.
///
/// # Errors
/// As [`parse`].
pub fn parse_up_to(text: &str, most: usize) -> Result<Expr, FormulaError> {
    let tokens = tokens(text)?;
    if let Some((at, _)) = tokens.get(most) {
        let message = format!("the formula has more than {most} parts");
        return Err(FormulaError { at: *at, message });
    }
    let mut p = Parser { tokens, next: 0, end: text.len(), depth: 0 };
    let expr = p.conditional()?;
    match p.tokens.get(p.next) {
        None => Ok(expr),
        Some((at, token)) => Err(FormulaError {
            at: *at,
            message: format!("unexpected {} after a complete formula", describe(token)),
        }),
    }
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    next: usize,
    end: usize,
    depth: usize,
}

fn describe(token: &Token) -> String {
    match token {
        Token::Num(n) => format!("`{n}`"),
        Token::Name(n) => format!("`{n}`"),
        Token::Const(n) => format!("`#{n}`"),
        Token::Op(o) => format!("`{o}`"),
    }
}

impl Parser {
    fn accept(&mut self, op: &str) -> bool {
        let here = matches!(self.tokens.get(self.next), Some((_, Token::Op(o))) if *o == op);
        self.next += usize::from(here);
        here
    }

    fn expect(&mut self, op: &str) -> Result<(), FormulaError> {
        if self.accept(op) { Ok(()) } else { Err(self.unexpected(&format!("`{op}`"))) }
    }

    fn unexpected(&self, wanted: &str) -> FormulaError {
        match self.tokens.get(self.next) {
            Some((at, token)) => FormulaError {
                at: *at,
                message: format!("expected {wanted}, found {}", describe(token)),
            },
            None => FormulaError { at: self.end, message: format!("expected {wanted} at the end") },
        }
    }

    fn conditional(&mut self) -> Result<Expr, FormulaError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.unexpected("fewer than 64 nested parentheses"));
        }
        let then = self.binary(1)?;
        let expr = if self.accept("if") {
            let cond = Box::new(self.binary(1)?);
            self.expect("else")?;
            let other = Box::new(self.conditional()?);
            Expr::If { cond, then: Box::new(then), other }
        } else {
            then
        };
        self.depth -= 1;
        Ok(expr)
    }

    fn operator(&self) -> Option<BinOp> {
        let Some((_, Token::Op(op))) = self.tokens.get(self.next) else { return None };
        Some(match *op {
            "+" => BinOp::Add,
            "-" => BinOp::Sub,
            "*" => BinOp::Mul,
            "/" => BinOp::Div,
            "<" => BinOp::Lt,
            ">" => BinOp::Gt,
            "<=" => BinOp::Le,
            ">=" => BinOp::Ge,
            "==" => BinOp::Eq,
            "&" | "&&" => BinOp::And,
            "|" | "||" => BinOp::Or,
            _ => return None,
        })
    }

    fn binary(&mut self, least: u8) -> Result<Expr, FormulaError> {
        let mut left = self.unary()?;
        while let Some(op) = self.operator().filter(|o| o.precedence() >= least) {
            self.next += 1;
            let right = self.binary(op.precedence() + 1)?;
            left = Expr::Bin(op, Box::new(left), Box::new(right));
            if op.precedence() == 3 && self.operator().is_some_and(|o| o.precedence() == 3) {
                return Err(self.unexpected("no second comparison (they do not chain)"));
            }
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, FormulaError> {
        let mut minus = false;
        while self.accept("-") {
            minus = !minus;
        }
        let operand = self.operand()?;
        Ok(if minus { Expr::Neg(Box::new(operand)) } else { operand })
    }

    fn operand(&mut self) -> Result<Expr, FormulaError> {
        if self.accept("(") {
            let inner = self.conditional()?;
            self.expect(")")?;
            return Ok(inner);
        }
        let Some((_, token)) = self.tokens.get(self.next).cloned() else {
            return Err(self.unexpected("a value"));
        };
        self.next += 1;
        match token {
            Token::Num(n) => Ok(Expr::Num(n)),
            Token::Const(n) => Ok(Expr::Const(n)),
            Token::Name(n) if n == "min" => self.call(BinOp::Min),
            Token::Name(n) if n == "max" => self.call(BinOp::Max),
            Token::Name(n) => Ok(Expr::Name(n)),
            Token::Op(_) => {
                self.next -= 1;
                Err(self.unexpected("a value"))
            }
        }
    }

    /// `min(a, b, c)` is `min(min(a, b), c)`.
    fn call(&mut self, op: BinOp) -> Result<Expr, FormulaError> {
        self.expect("(")?;
        let mut value = self.conditional()?;
        self.expect(",")?;
        loop {
            let next = self.conditional()?;
            value = Expr::Bin(op, Box::new(value), Box::new(next));
            if !self.accept(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok(value)
    }
}
