//! perfmon's formula texts → our formula language, over node ids and normalised event names.

use crate::encoding::normal_name;
use anyhow::{Context, Result, bail};
use std::collections::HashMap;
use tdtool::tables::formula::{BinOp, Expr, parse};

/// What the names of one vendor file stand for.
pub struct Names {
    /// `tma_frontend_bound` → `Frontend_Bound`.
    ids: HashMap<String, String>,
    /// Tree nodes that the file gives in percent.
    percent: Vec<String>,
}

impl Names {
    /// Of a file's metrics: their ids, and whether each is a percentage.
    pub fn new<'a>(metrics: impl Iterator<Item = (&'a str, bool)>) -> Self {
        let (mut ids, mut percent) = (HashMap::new(), Vec::new());
        for (id, is_percent) in metrics {
            ids.insert(format!("tma_{}", id.to_lowercase()), id.to_owned());
            if is_percent {
                percent.push(id.to_owned());
            }
        }
        Self { ids, percent }
    }

    /// A base formula.
    pub fn formula(&self, text: &str) -> Result<Expr> {
        let expr = parse_vendor(text)?;
        rename(&expr, &|name| self.leaf(name))
    }

    fn leaf(&self, name: &str) -> Result<Expr> {
        if let Some(constant) = constant(name) {
            return Ok(constant);
        }
        if name.starts_with("tma_") {
            let id = self.ids.get(name).with_context(|| format!("no metric `{name}`"))?;
            return Ok(Expr::Name(id.clone()));
        }
        Ok(Expr::Name(normal_name(name)))
    }

    /// A threshold. `fractions`: its numbers are ratios already.
    pub fn threshold(&self, text: &str, fractions: bool) -> Result<Expr> {
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("metric_TMA_") {
            plain += &rest[..at];
            rest = rest[at + "metric_TMA_".len()..].trim_start_matches('.');
            let end =
                rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
            plain += &rest[..end];
            rest = rest[end..].strip_prefix("(%)").unwrap_or(&rest[end..]);
        }
        plain += rest;
        let expr = rename(&parse_vendor(&plain)?, &|name| match self.ids.get(name) {
            Some(id) => Ok(Expr::Name(id.clone())),
            None => Ok(Expr::Name(name.to_owned())),
        })?;
        Ok(if fractions { expr } else { self.to_ratios(expr) })
    }

    /// Divides the numbers that percentages are compared with by 100.
    fn to_ratios(&self, expr: Expr) -> Expr {
        let Expr::Bin(op, a, b) = expr else { return expr };
        let percent = matches!(&*a, Expr::Name(n) if self.percent.contains(n));
        match (op, *b) {
            (BinOp::Lt | BinOp::Gt | BinOp::Le | BinOp::Ge, Expr::Num(n)) if percent => {
                Expr::Bin(op, a, Box::new(Expr::Num(n / 100.0)))
            }
            (_, b) => Expr::Bin(op, Box::new(self.to_ratios(*a)), Box::new(self.to_ratios(b))),
        }
    }
}

/// The run's constants, under the names of perfmon's base formulas.
pub fn constant(name: &str) -> Option<Expr> {
    let run = |name: &str| Expr::Const(name.to_owned());
    let text = match name {
        "smt_on" => return Some(run("SMT_ON")),
        "tsc" => return Some(Expr::Name("TSC".to_owned())),
        "duration_time" => "#DURATION_MS / 1000",
        "num_cpus" => "#SOCKETS * #CORES_PER_SOCKET * (1 + #SMT_ON)",
        _ => return None,
    };
    parse(text).ok()
}

/// Parses what perfmon writes; `> =` is one operator there.
pub fn parse_vendor(text: &str) -> Result<Expr> {
    let text = text.replace("> =", ">=").replace("< =", "<=");
    match parse(&text) {
        Ok(expr) => Ok(expr),
        Err(e) => bail!("{e}: {text}"),
    }
}

/// `expr` with every name replaced by what `leaf` makes of it.
pub fn rename(expr: &Expr, leaf: &dyn Fn(&str) -> Result<Expr>) -> Result<Expr> {
    let again = |e: &Expr| rename(e, leaf).map(Box::new);
    Ok(match expr {
        Expr::Num(_) | Expr::Const(_) => expr.clone(),
        Expr::Name(n) => leaf(n)?,
        Expr::Neg(e) => Expr::Neg(again(e)?),
        Expr::Bin(op, a, b) => Expr::Bin(*op, again(a)?, again(b)?),
        Expr::If { cond, then, other } => {
            Expr::If { cond: again(cond)?, then: again(then)?, other: again(other)? }
        }
    })
}

/// `100 * a / b` → `a / b`; anything else is unchanged and gives `None`.
pub fn without_hundred(expr: &Expr) -> Option<Expr> {
    let Expr::Bin(op @ (BinOp::Mul | BinOp::Div), a, b) = expr else { return None };
    if *op == BinOp::Mul && **a == Expr::Num(100.0) {
        return Some((**b).clone());
    }
    Some(Expr::Bin(*op, Box::new(without_hundred(a)?), b.clone()))
}

/// All names of an expression.
pub fn names_of(expr: &Expr) -> Vec<String> {
    let mut names = Vec::new();
    expr.names(&mut |n| names.push(n.to_owned()));
    names
}

/// Names of which the formula asks `if NAME >= 0`, once each.
pub fn guarded_by_sign(expr: &Expr, found: &mut Vec<String>) {
    match expr {
        Expr::Num(_) | Expr::Const(_) | Expr::Name(_) => {}
        Expr::Neg(e) => guarded_by_sign(e, found),
        Expr::Bin(_, a, b) => {
            guarded_by_sign(a, found);
            guarded_by_sign(b, found);
        }
        Expr::If { cond, then, other } => {
            if let Expr::Bin(BinOp::Ge, name, zero) = &**cond
                && let (Expr::Name(name), Expr::Num(0.0)) = (&**name, &**zero)
                && !found.contains(name)
            {
                found.push(name.clone());
            }
            for e in [cond, then, other] {
                guarded_by_sign(e, found);
            }
        }
    }
}
