//! perfmon's formula texts → our formula language, over node ids and normalised event names.

use crate::encoding::normal_name;
use anyhow::{Context, Result, bail};
use std::collections::HashMap;
use tma::formula::{BinOp, Expr, parse, parse_up_to};

/// Names in one vendor file.
pub struct Names {
    /// `tma_frontend_bound` → `Frontend_Bound`.
    ids: HashMap<String, String>,
    /// Tree nodes that the file gives in percent.
    percent: Vec<String>,
}

impl Names {
    /// Names of a file's metrics: each with its id, and whether it is a percentage.
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
        Ok(flat(if fractions { expr } else { self.to_ratios(expr) }))
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

/// `a and (b and c)` → `a and b and c`.
fn flat(expr: Expr) -> Expr {
    match expr {
        Expr::Bin(BinOp::And, a, b) => match flat(*b) {
            Expr::Bin(BinOp::And, b, c) => {
                flat(Expr::Bin(BinOp::And, Box::new(Expr::Bin(BinOp::And, a, b)), c))
            }
            b => Expr::Bin(BinOp::And, Box::new(flat(*a)), Box::new(b)),
        },
        other => other,
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

/// Most parts of a vendor's formula; the longest expanded one has near 10,000.
const PARTS: usize = 65_536;

/// Parses what perfmon writes; `> =` is one operator there.
pub fn parse_vendor(text: &str) -> Result<Expr> {
    let text = text.replace("> =", ">=").replace("< =", "<=");
    match parse_up_to(&text, PARTS) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        Names::new(
            [("Frontend_Bound", true), ("Fetch_Latency", true), ("Info_Thread_IPC", false)]
                .into_iter(),
        )
    }

    fn threshold(text: &str, fractions: bool) -> String {
        names().threshold(text, fractions).map(|e| e.to_string()).unwrap_or_else(|e| e.to_string())
    }

    #[test]
    fn all_dialects_of_thresholds_give_the_same() {
        let expected = "Fetch_Latency > 0.1 and Frontend_Bound > 0.15";
        let server =
            "( metric_TMA_..Fetch_Latency(%) > 10 ) & ( metric_TMA_Frontend_Bound(%) > 15 )";
        let client = "metric_TMA_..Fetch_Latency(%) > 10 & metric_TMA_Frontend_Bound(%) > 15";
        let atom = "metric_TMA_..Fetch_Latency(%) >0.10 && metric_TMA_Frontend_Bound(%) >0.15";
        let linux = "tma_fetch_latency > 0.1 & (tma_frontend_bound > 0.15)";
        assert_eq!(threshold(server, false), expected);
        assert_eq!(threshold(client, false), expected);
        assert_eq!(threshold(atom, true), expected);
        assert_eq!(threshold(linux, true), expected);
    }

    #[test]
    fn only_percentages_are_divided_by_a_hundred() {
        assert_eq!(
            threshold("metric_TMA_Info_Thread_IPC / 4 > 0.35", false),
            "Info_Thread_IPC / 4 > 0.35"
        );
    }

    #[test]
    fn base_formulas_name_nodes_events_and_constants() {
        let text =
            "( 4 ) * idq.ms_uops:c1 / tma_info_thread_ipc if smt_on else tsc / duration_time";
        assert_eq!(
            names().formula(text).map(|e| e.to_string()).ok().as_deref(),
            Some(
                "4 * IDQ.MS_UOPS:c1 / Info_Thread_IPC if #SMT_ON else TSC / (#DURATION_MS / 1000)"
            )
        );
        assert!(names().formula("tma_no_such_node").is_err());
    }

    #[test]
    fn the_factor_of_a_percentage_goes() {
        let without =
            |text| parse(text).ok().and_then(|e| without_hundred(&e)).map(|e| e.to_string());
        assert_eq!(without("100 * a / b").as_deref(), Some("a / b"));
        assert_eq!(without("a / b"), None);
    }
}
