//! Parses the name of an event as perf, perfmon and toplev write it.
//!
//! `cpu/event=0x9c,umask=0x1/u` · `cpu_core/INST_RETIRED.ANY,cmask=1/` · `X:c1:e1:SUP` ·
//! `cycles:uk` · `r019c` · `X [cpu_atom]` · `cpu@X\,cmask\=0x1@`

use std::collections::BTreeMap;
use tma::tables::Ring;

/// A parsed name; everything in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventName {
    /// The PMU, if the name has one.
    pub pmu: Option<String>,
    /// The event's own name; empty if it is given by its encoding.
    pub base: String,
    /// Fields and filters: `event`, `umask`, `cmask`, `inv`, `edge`, `any`, `config`, ….
    /// Flags such as `percore` have the value 1.
    pub fields: BTreeMap<String, u64>,
    /// The privilege ring it is restricted to.
    pub ring: Option<Ring>,
}

/// Fields that do not change the count.
const WITHOUT_EFFECT: [&str; 8] =
    ["name", "period", "freq", "time", "call-graph", "stack-size", "retire_latency", "metric-id"];

impl EventName {
    /// Parses `name`; `None` if a field has no valid value.
    pub fn parse(name: &str) -> Option<Self> {
        let mut parsed = Self::default();
        if is_of_guests(name) {
            // No table has events of guests: they are not the host's.
            parsed.fields.insert("guest".into(), 1);
        }
        let mut name = name.trim().to_lowercase();
        // `X [cpu_atom]`: perf adds the PMU when an event exists on several.
        if let Some((front, pmu)) = name.strip_suffix(']').and_then(|n| n.rsplit_once(" [")) {
            parsed.pmu = Some(pmu.to_owned());
            name = front.to_owned();
        }
        // perf's metric expressions use `@` for `/` and escape commas.
        if name.matches('@').count() == 2 {
            name = name.replace('@', "/").replace('\\', "");
        }
        if let Some((pmu, rest)) = name.split_once('/') {
            let (inside, modifiers) = rest.rsplit_once('/')?;
            parsed.pmu = Some(pmu.to_owned());
            for (i, term) in inside.split(',').enumerate() {
                parsed.term(term.trim(), i == 0)?;
            }
            parsed.letters(modifiers.trim_start_matches(':'));
            return Some(parsed);
        }
        for (i, term) in name.split(',').enumerate() {
            if i > 0 {
                parsed.term(term.trim(), false)?;
                continue;
            }
            let mut parts = term.split(':');
            parsed.base_or_raw(parts.next().unwrap_or_default());
            for part in parts {
                parsed.modifier(part)?;
            }
        }
        (!parsed.base.is_empty() || !parsed.fields.is_empty()).then_some(parsed)
    }

    fn base_or_raw(&mut self, text: &str) {
        let raw = text.strip_prefix('r').filter(|hex| (1..=16).contains(&hex.len()));
        match raw.and_then(|hex| u64::from_str_radix(hex, 16).ok()) {
            Some(config) => {
                self.fields.insert("config".into(), config);
            }
            None => self.base = text.to_owned(),
        }
    }

    /// A term between the slashes.
    fn term(&mut self, term: &str, first: bool) -> Option<()> {
        let Some((key, value)) = term.split_once('=') else {
            match term {
                "" => {}
                "inv" | "edge" | "any" | "percore" | "eq" => {
                    self.fields.insert(term.into(), 1);
                }
                _ if first => self.base_or_raw(term),
                _ if self.base.is_empty() => self.base = term.to_owned(),
                _ => self.modifier(term)?,
            }
            return Some(());
        };
        if !WITHOUT_EFFECT.contains(&key) {
            self.fields.insert(key.to_owned(), number(value)?);
        }
        Some(())
    }

    /// A modifier after a colon: perfmon's (`c1`, `e1`, `sup`), or perf's letters.
    fn modifier(&mut self, text: &str) -> Option<()> {
        let perfmon = [("eq", "eq"), ("c", "cmask"), ("e", "edge"), ("i", "inv"), ("u", "umask")];
        if let Some((key, value)) = text.split_once('=') {
            self.fields.insert(key.to_owned(), number(value)?);
            return Some(());
        }
        for (prefix, field) in perfmon {
            if let Some(value) = text.strip_prefix(prefix)
                && value.starts_with(|c: char| c.is_ascii_digit())
            {
                self.fields.insert(field.into(), number(value)?);
                return Some(());
            }
        }
        match text {
            "sup" => self.ring = Some(Ring::Kernel),
            "user" | "usr" => self.ring = Some(Ring::User),
            "percore" => {
                self.fields.insert("percore".into(), 1);
            }
            "retire_latency" => {
                self.fields.insert("retire_latency".into(), 1);
            }
            "one_unit" | "perf_metrics" => {}
            letters if letters.bytes().all(|b| b"ukhgppdsiewrb".contains(&b)) => {
                self.letters(letters);
            }
            _ => return None,
        }
        Some(())
    }

    /// perf's modifier letters; only `u` and `k` change the count.
    fn letters(&mut self, letters: &str) {
        match (letters.contains('u'), letters.contains('k')) {
            (true, false) => self.ring = Some(Ring::User),
            (false, true) => self.ring = Some(Ring::Kernel),
            _ => {}
        }
    }

    /// Base and filters as one text, to compare names; fields with the value 0 are left out.
    pub fn key(&self) -> String {
        let mut key = self.base.clone();
        for (field, value) in self.fields.iter().filter(|(_, v)| **v != 0) {
            key += &format!(",{field}={value:#x}");
        }
        key
    }
}

/// Whether perf's modifiers restrict an event to virtual machines: `cycles:G`.
fn is_of_guests(name: &str) -> bool {
    let letters = name.trim().rsplit([':', '/']).next().unwrap_or_default();
    let are_modifiers = letters.bytes().all(|b| b"ukhGHpPSDIeWRb".contains(&b));
    are_modifiers && letters.contains('G') && !letters.contains('H')
}

/// A decimal or `0x…` number.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}
