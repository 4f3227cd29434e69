//! Writes a table as TOML that a person reads at a glance: one block per node, one line per event.
//!
//! The text is parsed back and compared, so nothing that the schema holds can be lost here.

use anyhow::{Error, Result, ensure};
use serde::Serialize;
use std::fmt::Write as _;
use tma::tables::schema::{EventSpec, MatchRule, NodeSpec, TableFile};
use tma::tables::{PmuKind, Table};

/// A table to write: the folder below EVENTS, the comment at its head, and the table itself.
pub struct Generated {
    /// `intel` or `amd`.
    pub folder: &'static str,
    /// Lines of the comment at the head, without `#`.
    pub heading: Vec<String>,
    /// The table.
    pub table: TableFile,
}

/// The whole file.
///
/// # Errors
/// The text does not parse back to the same table (a mistake in this file), or it is not valid.
pub fn text(made: &Generated) -> Result<String> {
    let t = &made.table;
    let mut out = String::new();
    for line in &made.heading {
        out.push_str(format!("# {line}").trim_end());
        out.push('\n');
    }
    head(&mut out, t);
    section(&mut out, "facts", &t.facts)?;
    if let Some(signature) = &t.signature {
        section(&mut out, "signature", signature)?;
    }
    for (what, nodes) in [("node", &t.node), ("bottleneck", &t.bottleneck), ("info", &t.info)] {
        for n in nodes {
            node(&mut out, what, n);
        }
    }
    out.push_str("\n[events]\n");
    for (name, spec) in &t.events {
        writeln!(out, "{} = {{ {} }}", quoted(name), event(spec).join(", "))?;
    }
    let back: TableFile = toml::from_str(&out)?;
    ensure!(
        serde_json::to_value(&back)? == serde_json::to_value(t)?,
        "the text of `{}` does not parse back to the same table",
        t.name
    );
    Table::compile(back).map_err(Error::msg)?;
    Ok(out)
}

fn head(out: &mut String, t: &TableFile) {
    let mut line = |key: &str, value: String| {
        out.push_str(&format!("{key} = {value}\n"));
    };
    line("\nschema", t.schema.to_string());
    line("name", quoted(&t.name));
    line("title", quoted(&t.title));
    if !t.aliases.is_empty() {
        let names: Vec<String> = t.aliases.iter().map(|name| quoted(name)).collect();
        line("aliases", format!("[{}]", names.join(", ")));
    }
    line("vendor", quoted(&t.vendor));
    if let Some(core) = t.core {
        line("core", quoted(&format!("{core:?}")));
    }
    line("pmu", quoted(&t.pmu));
    line("source", lines(&t.source));
    if let Some(tma) = &t.tma {
        line("tma", quoted(tma));
    }
    line("clocks", quoted(&t.clocks));
    if let Some(texts) = &t.texts {
        line("texts", quoted(texts));
    }
    if !t.notes.is_empty() {
        line("notes", lines(&t.notes));
    }
    if !t.matches.is_empty() {
        let rules: Vec<String> = t.matches.iter().map(rule).collect();
        line("match", format!("[{}]", rules.join(", ")));
    }
    let p = &t.pipeline;
    let mut pairs = vec![format!("width = {}", p.width)];
    if p.reorder_buffer != 0 {
        pairs.push(format!("reorder_buffer = {}", p.reorder_buffer));
    }
    pairs.extend(p.source.as_ref().map(|s| format!("source = {}", quoted(s))));
    line("pipeline", format!("{{ {} }}", pairs.join(", ")));
    let c = &t.counters;
    let mut pairs = vec![
        format!("general = {}", c.general),
        format!("general_smt = {}", c.general_smt),
        format!("fixed = {}", c.fixed),
    ];
    if c.topdown_levels != 0 {
        pairs.push(format!("topdown_levels = {}", c.topdown_levels));
    }
    line("counters", format!("{{ {} }}", pairs.join(", ")));
}

/// One line a fact.
fn section(out: &mut String, title: &str, facts: &impl Serialize) -> Result<()> {
    let toml::Value::Table(facts) = toml::Value::try_from(facts)? else { return Ok(()) };
    if !facts.is_empty() {
        writeln!(out, "\n[{title}]")?;
    }
    for (name, value) in facts {
        writeln!(out, "{name} = {value}")?;
    }
    Ok(())
}

fn rule(r: &MatchRule) -> String {
    let list = |name: &str, values: &[u32], hex: bool| {
        let values: Vec<String> =
            values.iter().map(|v| if hex { format!("{v:#04x}") } else { v.to_string() }).collect();
        format!(", {name} = [{}]", values.join(", "))
    };
    let mut text = format!("{{ family = {}", r.family);
    if !r.models.is_empty() {
        text += &list("models", &r.models, true);
    }
    if !r.steppings.is_empty() {
        text += &list("steppings", &r.steppings, false);
    }
    text + " }"
}

fn optional<T: AsRef<str>>(out: &mut String, key: &str, value: &Option<T>) {
    if let Some(v) = value {
        out.push_str(&format!("{key} = {}\n", quoted(v.as_ref())));
    }
}

fn node(out: &mut String, what: &str, n: &NodeSpec) {
    out.push_str(&format!("\n[[{what}]]\nid = {}\n", quoted(&n.id)));
    optional(out, "label", &n.label);
    optional(out, "parent", &n.parent);
    if n.level != 0 {
        out.push_str(&format!("level = {}\n", n.level));
    }
    out.push_str(&format!("formula = {}\n", quoted(&n.formula)));
    optional(out, "over", &n.over);
    optional(out, "domain", &n.domain);
    optional(out, "unit", &n.unit);
    optional(out, "estimate", &n.estimate);
    for (key, list) in [("locate", &n.locate), ("issues", &n.issues), ("groups", &n.groups)] {
        if !list.is_empty() {
            let items: Vec<String> = list.iter().map(|s| quoted(s)).collect();
            out.push_str(&format!("{key} = [{}]\n", items.join(", ")));
        }
    }
}

/// The key-value pairs of an event, in the order of the schema.
fn event(e: &EventSpec) -> Vec<String> {
    let mut pairs = Vec::new();
    let word = |value: &dyn std::fmt::Debug| snake(&format!("{value:?}"));
    if e.pmu != PmuKind::Core {
        pairs.push(format!("pmu = \"{}\"", word(&e.pmu)));
    } else if e.metric.is_none() {
        pairs.push(format!("code = {:#04x}", e.code));
    }
    if e.pmu != PmuKind::Core && e.code != 0 {
        pairs.push(format!("code = {:#04x}", e.code));
    }
    let hex = |key: &str, value: u32| (value != 0).then(|| format!("{key} = {value:#04x}"));
    pairs.extend(hex("umask", e.umask));
    pairs.extend((e.cmask != 0).then(|| format!("cmask = {}", e.cmask)));
    for (key, on) in [("inv", e.inv), ("edge", e.edge), ("any", e.any), ("eq", e.eq)] {
        pairs.extend(on.then(|| format!("{key} = true")));
    }
    pairs.extend(e.extra.map(|x| format!("extra = \"{}\"", word(&x))));
    pairs.extend(e.value.map(|v| format!("value = {v:#x}")));
    pairs.extend(e.counters.as_ref().map(|c| format!("counters = {c:?}")));
    pairs.extend(e.fixed.map(|n| format!("fixed = {n}")));
    pairs.extend(e.fixed_only.then(|| "fixed_only = true".into()));
    pairs.extend(e.metric.map(|n| format!("metric = {n}")));
    pairs.extend(e.ring.map(|r| format!("ring = \"{}\"", word(&r))));
    pairs.extend(e.percore.then(|| "percore = true".into()));
    pairs.extend(e.precise.then(|| "precise = true".into()));
    pairs.extend(e.period.map(|p| format!("period = {p}")));
    pairs.extend(e.errata.as_ref().map(|t| format!("errata = {}", quoted(t))));
    pairs.extend(e.default.map(|d| format!("default = {d:?}")));
    pairs
}

/// `OffcoreRsp` → `offcore_rsp`, as serde writes it.
fn snake(name: &str) -> String {
    let mut text = String::new();
    for (i, c) in name.chars().enumerate() {
        if c.is_uppercase() && i > 0 {
            text.push('_');
        }
        text.extend(c.to_lowercase());
    }
    text
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// One item a line.
fn lines(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|i| format!("    {},\n", quoted(i))).collect();
    format!("[\n{}]", items.concat())
}
