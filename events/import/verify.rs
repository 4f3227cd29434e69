//! The tables against the vendor's fully expanded formulas, on random counts.
//!
//! A metric's `Formula` spells everything out over aliases of events; ours goes through other
//! nodes. The two must agree, repaired metrics and what is built on them excepted.

use crate::encoding::normal_name;
use crate::formulas::{names_of, parse_vendor};
use crate::machines::{MACHINES, Metrics};
use crate::perfmon::Metric;
use crate::sources::{self, read};
use anyhow::{Context, Result, bail};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use tma::formula::{Inputs, Leaf, Program, Resolve};
use tma::tables::{Const, Table};

/// Rounds of random counts for each table, half of them with SMT on.
const ROUNDS: u64 = 4;

/// Compares every metric of every table; returns how many values agree.
pub fn verify(vendor: &Path) -> Result<usize> {
    let (mut agree, mut differ) = (0, Vec::new());
    for machine in MACHINES.iter().filter(|m| matches!(m.metrics, Metrics::Perfmon(_))) {
        let read = read(vendor, machine)?;
        let metrics = read.metrics.clone();
        let table = Table::compile(read.table()?.table).map_err(anyhow::Error::msg)?;
        let skip = downstream_of_repairs(&table);
        for round in 0..ROUNDS {
            let mut values = Values::random(&table, round);
            values.nodes(&table);
            for m in &metrics {
                if skip.contains(m.metric_name.as_str()) {
                    continue;
                }
                let theirs = expanded(m, &values)
                    .with_context(|| format!("{} {}", machine.name, m.metric_name));
                let theirs = match theirs {
                    Ok(value) => value,
                    Err(e) => {
                        differ.push(format!("{e:#}"));
                        continue;
                    }
                };
                let ours = values.node[usize::from(table.node(&m.metric_name).context("no node")?)];
                let scale = if m.unit_of_measure == "percent" { 100.0 } else { 1.0 };
                if close(ours * scale, theirs) {
                    agree += 1;
                } else {
                    differ.push(format!(
                        "{} {} round {round}: ours {}, expanded {theirs}",
                        machine.name,
                        m.metric_name,
                        ours * scale
                    ));
                }
            }
        }
    }
    if !differ.is_empty() {
        bail!("{} values differ ({agree} agree):\n{}", differ.len(), differ.join("\n"));
    }
    Ok(agree)
}

fn close(a: f64, b: f64) -> bool {
    (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1e-12)
}

/// Nodes whose formula is repaired, and all that read one of them.
fn downstream_of_repairs(table: &Table) -> HashSet<String> {
    let mut skip = HashSet::new();
    for &n in &table.order {
        let node = &table.nodes[usize::from(n)];
        let repaired = sources::repairs_of(&table.name, &node.id)
            .any(|r| matches!(r.what, sources::Fix::Formula(..)));
        let reads = node
            .uses
            .iter()
            .flatten()
            .any(|u| skip.contains(table.nodes[usize::from(*u)].id.as_str()));
        if repaired || reads {
            skip.insert(node.id.to_string());
        }
    }
    skip
}

/// Random counts, and what the table makes of them.
struct Values {
    events: HashMap<String, f64>,
    event: Vec<f64>,
    node: Vec<f64>,
    constant: [f64; 5],
}

impl Inputs for Values {
    fn value(&mut self, leaf: Leaf) -> f64 {
        match leaf {
            Leaf::Event(e) => self.event[usize::from(e)],
            Leaf::Node(n) => self.node[usize::from(n)],
            Leaf::Const(c) => self.constant[usize::from(c)],
        }
    }
}

impl Values {
    fn random(table: &Table, round: u64) -> Self {
        let mut state = 0x9e37_79b9_7f4a_7c15 ^ (round + 1);
        let event: Vec<f64> =
            table.events.iter().map(|_| 10f64.powf(3.0 + 6.0 * next(&mut state))).collect();
        let events =
            table.events.iter().map(|e| e.name.clone()).zip(event.iter().copied()).collect();
        let smt = (round % 2) as f64;
        let constant = [smt, 1000.0 + 500.0 * next(&mut state), 2.4e9, 2.0, 28.0];
        Self { events, event, node: vec![f64::NAN; table.nodes.len()], constant }
    }

    fn nodes(&mut self, table: &Table) {
        for &n in &table.order {
            self.node[usize::from(n)] = table.nodes[usize::from(n)].formula.eval(self);
        }
    }
}

/// splitmix64, as a number in 0..1.
fn next(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// Names → places in a list of values.
struct Aliases(Vec<(String, f64)>);

impl Resolve for Aliases {
    fn name(&self, name: &str) -> Option<Leaf> {
        let at = self.0.iter().position(|(n, _)| n == name)?;
        u16::try_from(at).ok().map(Leaf::Event)
    }

    fn constant(&self, _: &str) -> Option<Leaf> {
        None
    }
}

impl Inputs for Aliases {
    fn value(&mut self, leaf: Leaf) -> f64 {
        match leaf {
            Leaf::Event(e) => self.0[usize::from(e)].1,
            _ => f64::NAN,
        }
    }
}

/// The value of a metric's expanded formula.
fn expanded(m: &Metric, values: &Values) -> Result<f64> {
    let [smt, ms, _, sockets, cores] = values.constant;
    let mut aliases = Vec::new();
    for a in &m.events {
        let name = normal_name(&a.name);
        let value = values.events.get(&name).with_context(|| format!("no event {name}"))?;
        aliases.push((a.alias.clone(), *value));
    }
    for c in &m.constants {
        let value = match c.name.as_str() {
            "HYPERTHREADING_ON" => smt,
            "THREADS_PER_CORE" => 1.0 + smt,
            "DURATIONTIMEINMILLISECONDS" => ms,
            // The base formula has the counter there, not its frequency.
            "SYSTEM_TSC_FREQ" => values.events.get("TSC").copied().unwrap_or(f64::NAN),
            "system.sockets[0].cpus.count * system.socket_count" => sockets * cores * (1.0 + smt),
            other => other.parse().with_context(|| format!("unknown constant {other}"))?,
        };
        aliases.push((c.alias.clone(), value));
    }
    debug_assert_eq!(Const::ALL.len(), 5);
    let expr = parse_vendor(&compact(&m.formula))?;
    let mut aliases = Aliases(aliases);
    if let Some(unbound) = names_of(&expr).iter().find(|n| aliases.name(n).is_none()) {
        bail!("`{unbound}` is no alias in {}", m.formula);
    }
    let program = Program::compile(&expr, &aliases).map_err(anyhow::Error::msg)?;
    Ok(program.eval(&mut aliases))
}

/// The text without the blanks that only pad it.
fn compact(text: &str) -> String {
    text.split_whitespace()
        .map(
            |word| {
                if matches!(word, "if" | "else") { format!(" {word} ") } else { word.to_owned() }
            },
        )
        .collect()
}
