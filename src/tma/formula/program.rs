//! Compiles [`Expr`] to a compact stack program over resolved leaves.

use super::parse::Uncompiled;
use super::{BinOp, Expr};
use serde::{Deserialize, Serialize};

/// Slots of the evaluation stack; a formula that needs more does not compile.
pub const STACK: usize = 64;

/// Operand that a name refers to, by index into the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Leaf {
    /// `table.events[i]`
    Event(u16),
    /// `table.nodes[i]`
    Node(u16),
    /// `tables::Const::ALL[i]`
    Const(u8),
}

/// Names → leaves, when a formula is compiled.
pub trait Resolve {
    /// The event or node called `name`.
    fn name(&self, name: &str) -> Option<Leaf>;
    /// The constant called `name`, without its `#`.
    fn constant(&self, name: &str) -> Option<Leaf>;
}

/// Values of leaves, when a program runs. NaN means undefined.
pub trait Inputs {
    /// The value of `leaf`.
    fn value(&mut self, leaf: Leaf) -> f64;
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
enum Op {
    Num(f64),
    Leaf(Leaf),
    Neg,
    Bin(BinOp),
    /// Pops; jumps to the index if it is 0.
    JumpIfZero(u16),
    Jump(u16),
}

/// A formula ready to run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Program {
    ops: Box<[Op]>,
}

impl Program {
    /// Compiles `expr`.
    ///
    /// # Errors
    /// The first name that `resolve` does not know, or the formula is too large.
    pub fn compile(expr: &Expr, resolve: &dyn Resolve) -> Result<Self, Uncompiled> {
        let mut ops = Vec::new();
        emit(expr, resolve, &mut ops, 0)?;
        Ok(Self { ops: ops.into() })
    }

    /// Runs the program. Undefined (a division by zero) is NaN.
    pub fn eval<I: Inputs + ?Sized>(&self, inputs: &mut I) -> f64 {
        self.run::<false, I>(inputs)
    }

    /// Runs the program without the limits of a share: `max` of 0 and a value, and `min` of 1 and a value, are the
    /// value, which shows how far beyond the limit it is, and how it varies.
    pub fn eval_unlimited<I: Inputs + ?Sized>(&self, inputs: &mut I) -> f64 {
        self.run::<true, I>(inputs)
    }

    fn run<const UNLIMITED: bool, I: Inputs + ?Sized>(&self, inputs: &mut I) -> f64 {
        let mut literal = [false; STACK];
        let mut stack = [0.0f64; STACK];
        let mut top = 0;
        let mut at = 0;
        while let Some(op) = self.ops.get(at) {
            at += 1;
            match *op {
                Op::Num(n) => {
                    literal[top] = true;
                    stack[top] = n;
                    top += 1;
                }
                Op::Leaf(leaf) => {
                    literal[top] = false;
                    stack[top] = inputs.value(leaf);
                    top += 1;
                }
                Op::Neg => stack[top - 1] = -stack[top - 1],
                Op::Bin(op) => {
                    top -= 1;
                    let limit = match op {
                        BinOp::Max if UNLIMITED => Some(0.0),
                        BinOp::Min if UNLIMITED => Some(1.0),
                        _ => None,
                    };
                    let is_limit = |at: usize| literal[at] && Some(stack[at]) == limit;
                    stack[top - 1] = match (is_limit(top - 1), is_limit(top)) {
                        (true, false) => stack[top],
                        (false, true) => stack[top - 1],
                        _ => apply(op, stack[top - 1], stack[top]),
                    };
                    literal[top - 1] = false;
                }
                Op::JumpIfZero(to) => {
                    top -= 1;
                    if stack[top].is_nan() {
                        return f64::NAN;
                    }
                    if stack[top] == 0.0 {
                        at = usize::from(to);
                    }
                }
                Op::Jump(to) => at = usize::from(to),
            }
        }
        stack[0]
    }

    /// Every leaf of the formula, repeats included.
    pub fn leaves(&self) -> impl Iterator<Item = Leaf> + '_ {
        self.ops.iter().filter_map(|op| if let Op::Leaf(l) = op { Some(*l) } else { None })
    }

    /// The leaves that can matter when constant `which` is fixed to `value`: branches of
    /// `a if #CONST else b` that are then never taken do not count.
    pub fn leaves_given(&self, which: Leaf, value: f64) -> Vec<Leaf> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(op) = self.ops.get(at) {
            at += 1;
            match *op {
                Op::Leaf(l) if l == which => {
                    if let Some(Op::JumpIfZero(to)) = self.ops.get(at) {
                        at = if value == 0.0 { usize::from(*to) } else { at + 1 };
                    }
                }
                Op::Leaf(l) => found.push(l),
                // Reached only at the end of a taken branch: skip the other one, unless the
                // condition was dynamic, when both count.
                Op::Jump(to) if self.is_static_branch(at - 1, which) => at = usize::from(to),
                _ => {}
            }
        }
        found
    }

    /// Whether the `Jump` at `index` ends a branch whose condition is just the leaf `which`.
    fn is_static_branch(&self, index: usize, which: Leaf) -> bool {
        let target = u16::try_from(index + 1).unwrap_or(u16::MAX);
        self.ops
            .windows(2)
            .any(|w| matches!(w, [Op::Leaf(l), Op::JumpIfZero(to)] if *l == which && *to == target))
    }
}

fn apply(op: BinOp, a: f64, b: f64) -> f64 {
    let truth = |t: bool| f64::from(u8::from(t));
    // Conditions on the undefined are undefined, too.
    if a.is_nan() || b.is_nan() {
        return if op == BinOp::Mul && (a == 0.0 || b == 0.0) { 0.0 } else { f64::NAN };
    }
    match op {
        BinOp::Add => a + b,
        BinOp::Sub => a - b,
        BinOp::Mul => a * b,
        BinOp::Div if b == 0.0 => f64::NAN,
        BinOp::Div => a / b,
        BinOp::Lt => truth(a < b),
        BinOp::Gt => truth(a > b),
        BinOp::Le => truth(a <= b),
        BinOp::Ge => truth(a >= b),
        BinOp::Eq => truth(a == b),
        BinOp::And => truth(a != 0.0 && b != 0.0),
        BinOp::Or => truth(a != 0.0 || b != 0.0),
        BinOp::Min => a.min(b),
        BinOp::Max => a.max(b),
    }
}

fn emit(expr: &Expr, r: &dyn Resolve, ops: &mut Vec<Op>, depth: usize) -> Result<(), Uncompiled> {
    if depth >= STACK || ops.len() >= usize::from(u16::MAX) {
        return Err(Uncompiled::Large);
    }
    match expr {
        Expr::Num(n) => ops.push(Op::Num(*n)),
        Expr::Name(n) => {
            ops.push(Op::Leaf(r.name(n).ok_or_else(|| Uncompiled::Name(n.clone()))?));
        }
        Expr::Const(n) => {
            let leaf = r.constant(n).ok_or_else(|| Uncompiled::Constant(n.clone()))?;
            ops.push(Op::Leaf(leaf));
        }
        Expr::Neg(e) => {
            emit(e, r, ops, depth)?;
            ops.push(Op::Neg);
        }
        Expr::Bin(op, a, b) => {
            emit(a, r, ops, depth)?;
            emit(b, r, ops, depth + 1)?;
            ops.push(Op::Bin(*op));
        }
        Expr::If { cond, then, other } => {
            emit(cond, r, ops, depth)?;
            let test = ops.len();
            ops.push(Op::JumpIfZero(0));
            emit(then, r, ops, depth)?;
            let jump = ops.len();
            ops.push(Op::Jump(0));
            let here = |ops: &Vec<Op>| u16::try_from(ops.len()).map_err(|_| Uncompiled::Long);
            ops[test] = Op::JumpIfZero(here(ops)?);
            emit(other, r, ops, depth)?;
            ops[jump] = Op::Jump(here(ops)?);
        }
    }
    Ok(())
}
