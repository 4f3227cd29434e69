//! toplev's `--valcsv`: the counts that its tree is computed from, with group numbers.
//!
//! Fields are separated as `-x` says. Columns by their header, or as newer versions write them if it was cut off: `Timestamp,CPU,Group,Event,Value,Perf-event,Index,STDDEV,MULTI,Nodes`;
//! older versions write `STDEV` and no `Nodes`. `MULTI` is the running share in percent, 0 where
//! perf printed `<not counted>` or `<not supported>` (toplev then writes 0 as the count).
//! (pmu-tools, toplev.py, `dump_raw` and `do_execute`.)

use super::builder::{self, BlockKey, Builder, ParsedCount};
use super::plain::{self, SEPARATORS};
use super::recording::{Count, Scope, ScopeKind, Unparsed, scope_of};
use std::borrow::Cow;
use tma::error::Result;

/// Indices of the columns.
pub struct Columns {
    separator: char,
    timestamp: usize,
    cpu: usize,
    group: Option<usize>,
    event: usize,
    value: usize,
    perf_event: Option<usize>,
    multiplex: Option<usize>,
    count: usize,
}

/// Whether `text` is the header of toplev's `-x,` output: nodes, not counts.
pub fn is_results_header(text: &str) -> bool {
    SEPARATORS.into_iter().any(|separator| {
        let fields = plain::fields(text, separator);
        let has = |name: &str| fields.iter().any(|f| f.trim().eq_ignore_ascii_case(name));
        has("Area") && has("Value") && (has("Node") || has("Unit"))
    })
}

impl Columns {
    /// Recognises the header.
    pub fn from_header(text: &str) -> Option<Self> {
        SEPARATORS.into_iter().find_map(|separator| Self::separated(text, separator))
    }

    fn separated(text: &str, separator: char) -> Option<Self> {
        let fields = plain::fields(text, separator);
        let at = |name: &str| fields.iter().position(|f| f.trim().eq_ignore_ascii_case(name));
        Some(Self {
            separator,
            timestamp: at("Timestamp")?,
            cpu: at("CPU")?,
            group: at("Group"),
            event: at("Event")?,
            value: at("Value")?,
            perf_event: at("Perf-event"),
            multiplex: at("MULTI"),
            count: fields.len(),
        })
    }

    /// Recognises a line of a file without its header: time, CPU, group, event, count, perf's event, index, spread,
    /// running share and, in newer versions, nodes. Its fields come with it.
    pub fn headerless(text: &str) -> Option<(Self, Vec<Cow<'_, str>>)> {
        SEPARATORS.into_iter().find_map(|separator| {
            let fields = plain::fields(text, separator);
            let number = |at: usize| fields[at].trim().parse::<f64>().is_ok();
            let named = |at: usize| !fields[at].trim().is_empty() && !number(at);
            let fits = matches!(fields.len(), 9 | 10)
                && [0, 2, 4, 6, 7, 8].into_iter().all(number)
                && named(3)
                && named(5);
            let columns = Self {
                separator,
                timestamp: 0,
                cpu: 1,
                group: Some(2),
                event: 3,
                value: 4,
                perf_event: Some(5),
                multiplex: Some(8),
                count: fields.len(),
            };
            fits.then_some((columns, fields))
        })
    }

    /// Parses one line.
    pub fn line(&mut self, number: u32, text: &str, builder: &mut Builder) -> Result<()> {
        if let Some(again) = Self::from_header(text) {
            // On hybrids there is a header for each kind of core.
            *self = again;
            return Ok(());
        }
        self.add(number, text, &plain::fields(text, self.separator), builder)
    }

    /// Adds the line `text`, whose fields these are.
    pub fn add(
        &self,
        number: u32,
        text: &str,
        fields: &[Cow<'_, str>],
        builder: &mut Builder,
    ) -> Result<()> {
        match self.parse(fields) {
            Ok((key, found)) => builder.row(number, &key, &found),
            Err(why) => {
                builder.skip(number, why, text);
                Ok(())
            }
        }
    }

    fn parse<'a>(
        &self,
        fields: &'a [Cow<'_, str>],
    ) -> std::result::Result<(BlockKey, ParsedCount<'a>), Unparsed> {
        if fields.len() != self.count {
            return Err(Unparsed::OtherColumns);
        }
        let field = |at: usize| fields.get(at).map_or("", |f| f.trim());
        let time = match field(self.timestamp) {
            "" | "None" | "nan" => None,
            text => Some(time(text)?),
        };
        let scope = match field(self.cpu) {
            "" => None,
            cpu => {
                let core = || Scope { kind: ScopeKind::Core, name: cpu.to_owned(), cgroup: None };
                Some(scope_of(cpu, false).unwrap_or_else(core))
            }
        };
        let mut name = field(self.event);
        let perf_name = self.perf_event.map_or("", field);
        // toplev writes `dummy` for events that are not in its lists; perf's name identifies them.
        if name.is_empty() || name == "dummy" {
            name = perf_name;
        }
        if name.is_empty() {
            return Err(Unparsed::NoEvent);
        }
        let share = self.multiplex.map(field).and_then(builder::percent);
        let count = match builder::count(field(self.value))? {
            Count::Value(_) if share == Some(0.0) => Count::NotCounted,
            count => count,
        };
        // perf's name has the modifiers (cmask, edge) and, on hybrids, the kind of core that toplev's own name
        // leaves out.
        let says_more = perf_name.contains('=') || is_of_hybrid(perf_name);
        let name = if perf_name.starts_with("cpu") && says_more { perf_name } else { name };
        let found = ParsedCount {
            name,
            count,
            running: share.filter(|_| matches!(count, Count::Value(_))),
            group: self.group.map(field).and_then(|g| g.parse().ok()),
            ..ParsedCount::default()
        };
        Ok((BlockKey { time, scope, ..BlockKey::default() }, found))
    }
}

/// Whether perf's name of an event has the PMU of one kind of core: `cpu_atom/cycles/`.
fn is_of_hybrid(name: &str) -> bool {
    name.starts_with("cpu_") && name.matches('/').count() == 2
}

/// The time stamp in nanoseconds; Python prints seconds as a float of any number of decimals.
fn time(text: &str) -> std::result::Result<u64, Unparsed> {
    let seconds: f64 = text.parse().map_err(|_| Unparsed::NoTime)?;
    match (0.0..1e9).contains(&seconds) {
        true => Ok((seconds * 1e9).round() as u64),
        false => Err(Unparsed::Time),
    }
}
