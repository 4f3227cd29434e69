//! Parses formula text: tokens with their places → [`Expr`], by recursive descent with a depth limit. Has the
//! mistakes in formulas.

use super::{BinOp, Expr};
use std::fmt;

/// A formula that does not parse: where, and what is wrong there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormulaError {
    /// Byte offset into the formula text.
    pub at: usize,
    /// The text found or expected there.
    pub message: String,
}

impl fmt::Display for FormulaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at character {}: {}", self.at + 1, self.message)
    }
}

impl std::error::Error for FormulaError {}

/// Why a formula that parses does not compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Uncompiled {
    /// Nothing has this name.
    Name(String),
    /// There is no such constant.
    Constant(String),
    /// It needs too large a stack, or too many operations.
    Large,
    /// Its branches are too long.
    Long,
}

impl fmt::Display for Uncompiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "unknown name `{name}`"),
            Self::Constant(name) => write!(f, "unknown constant `#{name}`"),
            Self::Large => f.write_str("the formula is too deep or too long"),
            Self::Long => f.write_str("the formula is too long"),
        }
    }
}

impl std::error::Error for Uncompiled {}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Num(f64),
    Name(String),
    Const(String),
    Op(&'static str),
}

/// The symbols, longest first. `&&` and `||` are what E-core sheets write for `and`, `or`.
const SYMBOLS: [&str; 17] =
    ["<=", ">=", "==", "&&", "||", "+", "-", "*", "/", "(", ")", ",", "<", ">", "&", "|", "?"];

/// All tokens of `text`, each with the byte offset where it begins.
fn tokens(text: &str) -> Result<Vec<(usize, Token)>, FormulaError> {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let at = text.len() - rest.len();
        let Some(first) = rest.chars().next() else { return Ok(found) };
        let (token, length) = if let Some(after) = rest.strip_prefix('#') {
            let length = word_length(after);
            if length == 0 {
                return Err(error(at, "`#` must be followed by the name of a constant"));
            }
            (Token::Const(after[..length].to_owned()), length + 1)
        } else if first.is_ascii_digit() || first == '.' {
            number_or_name(rest, at)?
        } else if first.is_alphabetic() || first == '_' {
            let length = name_length(rest);
            (word(&rest[..length]), length)
        } else if let Some(symbol) = SYMBOLS.iter().find(|s| rest.starts_with(**s)) {
            (Token::Op(symbol), symbol.len())
        } else {
            return Err(error(at, format!("unexpected character `{first}`")));
        };
        found.push((at, token));
        rest = &rest[length..];
    }
}

fn error(at: usize, message: impl Into<String>) -> FormulaError {
    FormulaError { at, message: message.into() }
}

fn word(text: &str) -> Token {
    match text {
        "if" => Token::Op("if"),
        "else" => Token::Op("else"),
        "and" => Token::Op("&"),
        "or" => Token::Op("|"),
        _ => Token::Name(text.to_owned()),
    }
}

/// `4K_Aliasing` is a name, `2.5` and `1e9` are numbers.
fn number_or_name(rest: &str, at: usize) -> Result<(Token, usize), FormulaError> {
    let length = name_length(rest);
    let mut text = &rest[..length];
    // 1e-9: the sign belongs to the exponent.
    if text.ends_with(['e', 'E'])
        && text[..text.len() - 1].parse::<f64>().is_ok()
        && rest[length..].starts_with(['+', '-'])
    {
        let digits = rest[length + 1..].bytes().take_while(u8::is_ascii_digit).count();
        text = &rest[..length + 1 + digits];
    }
    if let Ok(value) = text.parse::<f64>() {
        return Ok((Token::Num(value), text.len()));
    }
    if text.contains(|c: char| c.is_ascii_alphabetic()) && !text.starts_with('.') {
        return Ok((Token::Name(text.to_owned()), text.len()));
    }
    Err(error(at, format!("`{text}` is not a number")))
}

fn word_length(text: &str) -> usize {
    text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len())
}

/// A name with its modifiers (`:c1:e1`, `:ocr_msr_val=0x10`) and paper-style bounds (`[≥MIW]`).
fn name_length(text: &str) -> usize {
    let mut end = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((i, c)) = chars.next() {
        let part_of_it = match c {
            '[' => {
                let Some(close) = text[i..].find(']') else { return i };
                while chars.peek().is_some_and(|(j, _)| *j <= i + close) {
                    chars.next();
                }
                end = i + close + 1;
                continue;
            }
            '=' => text[..i].contains(':') && !text[i..].starts_with("=="),
            ':' => i > 0,
            _ => c.is_alphanumeric() || c == '_' || c == '.',
        };
        if !part_of_it {
            return i;
        }
        end = i + c.len_utf8();
    }
    end
}

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
