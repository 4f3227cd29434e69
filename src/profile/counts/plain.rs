//! CSV of one's own: `event,value`, `event,value,running`, `trial,event,value`.
//!
//! With a header the columns may have any order and several names (see [`Columns::from_header`]);
//! without one, lines are `event,value` or `event,value,running`. `running` is the running share
//! (0..=1); values above 1 and the column `running_pct` are percent.

use super::builder::{self, BlockKey, Builder, ParsedCount};
use super::recording::{Count, Unparsed, scope_of};
use std::borrow::Cow;
use tma::error::Result;

/// Indices of the columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Columns {
    separator: char,
    count: usize,
    event: usize,
    value: usize,
    running: Option<usize>,
    percent: bool,
    trial: Option<usize>,
    kind: Option<usize>,
    group: Option<usize>,
    scope: Option<usize>,
    time: Option<usize>,
}

/// Separators of fields that users choose.
pub const SEPARATORS: [char; 4] = [',', ';', '\t', '|'];

impl Columns {
    /// The separator.
    pub fn separator(&self) -> char {
        self.separator
    }

    /// Recognises a header: it has an event column and a value column.
    pub fn from_header(text: &str) -> Option<Self> {
        let text = text.trim_start_matches(['#', '\u{feff}']).trim();
        SEPARATORS.into_iter().find_map(|separator| {
            let fields: Vec<String> =
                fields(text, separator).iter().map(|f| f.trim().to_lowercase()).collect();
            let at = |names: &[&str]| fields.iter().position(|f| names.contains(&f.as_str()));
            let percent = at(&["running_pct", "running_percent", "running%"]);
            Some(Self {
                separator,
                count: fields.len(),
                event: at(&["event", "name", "counter"])?,
                value: at(&["value", "count"])?,
                running: percent.or_else(|| at(&["running", "running_share"])),
                percent: percent.is_some(),
                trial: at(&["trial", "block", "run", "sample"]),
                kind: at(&["kind"]),
                group: at(&["group"]),
                scope: at(&["cpu", "scope", "thread"]),
                time: at(&["time", "timestamp", "interval"]),
            })
        })
    }

    /// Recognises a line `name,number` or `name,number,share` of a file without header.
    pub fn headerless(text: &str) -> Option<Self> {
        SEPARATORS.into_iter().find_map(|separator| {
            let fields = fields(text.trim(), separator);
            let numbers = fields.iter().rev().take_while(|f| is_value(f.trim())).count();
            let names = fields.len() - numbers;
            let named = fields[0].starts_with(|c: char| c.is_ascii_alphabetic() || c == '#');
            if names != 1 || !(1..=2).contains(&numbers) || !named {
                return None;
            }
            Some(Self { separator, count: 2, value: 1, running: Some(2), ..Self::default() })
        })
    }

    /// Parses one line.
    pub fn line(&mut self, number: u32, text: &str, builder: &mut Builder) -> Result<()> {
        if text.starts_with('#') && Self::headerless(text).is_none() {
            return Ok(());
        }
        let fields = fields(text, self.separator);
        let key = BlockKey {
            trial: self.text(&fields, self.trial).map(str::to_owned),
            scope: self.text(&fields, self.scope).and_then(|s| scope_of(s, false)),
            time: self.text(&fields, self.time).and_then(builder::seconds),
            ..BlockKey::default()
        };
        let is_metric =
            self.text(&fields, self.kind).is_some_and(|k| k.eq_ignore_ascii_case("metric"));
        match self.parse(&fields) {
            Ok(found) if is_metric => {
                if let Count::Value(value) = found.count {
                    builder.metric(number, &key, found.name, value);
                }
                Ok(())
            }
            Ok(found) => builder.row(number, &key, &found),
            // The header once more: files were concatenated.
            Err(_) if Self::from_header(text).as_ref() == Some(self) => Ok(()),
            Err(why) => {
                builder.skip(number, why, text);
                Ok(())
            }
        }
    }

    fn text<'a>(&self, fields: &'a [Cow<'_, str>], at: Option<usize>) -> Option<&'a str> {
        fields.get(at?).map(|f| f.trim()).filter(|f| !f.is_empty())
    }

    fn parse<'a>(
        &self,
        fields: &'a [Cow<'_, str>],
    ) -> std::result::Result<ParsedCount<'a>, Unparsed> {
        if fields.len() < self.count {
            return Err(Unparsed::FewColumns);
        }
        if fields.len() > self.count.max(self.running.map_or(0, |r| r + 1)) {
            return Err(Unparsed::ManyColumns);
        }
        let name = self.text(fields, Some(self.event)).ok_or(Unparsed::NoEvent)?;
        let value = self.text(fields, Some(self.value)).ok_or(Unparsed::NoValue)?;
        let count = builder::count(value)?;
        let running = self.text(fields, self.running).map(|text| self.share(text)).transpose()?;
        let group = self.group(fields)?;
        Ok(ParsedCount { name, count, running, group, ..ParsedCount::default() })
    }

    fn group(&self, fields: &[Cow<'_, str>]) -> std::result::Result<Option<u32>, Unparsed> {
        let text = self.text(fields, self.group);
        text.map(|text| text.parse().map_err(|_| Unparsed::Group)).transpose()
    }

    fn share(&self, text: &str) -> std::result::Result<f64, Unparsed> {
        let wrong = Unparsed::Share;
        let number: f64 = text.trim_end_matches('%').trim().parse().map_err(|_| wrong)?;
        if (0.0..=1.0).contains(&number) && !self.percent && !text.ends_with('%') {
            return Ok(number);
        }
        builder::percent(text).ok_or(wrong)
    }
}

fn is_value(field: &str) -> bool {
    field.starts_with("<not ") || field.trim_end_matches('%').parse::<f64>().is_ok()
}

/// Fields of a line; separators inside quotes and inside `cpu/…,…/` do not separate.
pub fn fields(text: &str, separator: char) -> Vec<Cow<'_, str>> {
    if !text.contains(['"', '/']) {
        return text.split(separator).map(Cow::Borrowed).collect();
    }
    let mut fields = Vec::new();
    let mut field = String::new();
    let (mut quoted, mut inside_pmu) = (false, false);
    let paired_slashes = text.bytes().filter(|b| *b == b'/').count() % 2 == 0;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            c if c == separator && !quoted && !inside_pmu => {
                fields.push(Cow::Owned(std::mem::take(&mut field)));
            }
            c => {
                inside_pmu ^= c == '/' && paired_slashes;
                field.push(c);
            }
        }
    }
    fields.push(Cow::Owned(field));
    fields
}
