//! Formats that several renderers write: callgrind's (Valgrind manual, "Callgrind Format Specification"), for
//! callgrind_annotate and kcachegrind; protocol buffers; text in XML and HTML.

use crate::documents::flame::{Costs, FunctionId};
use std::collections::HashMap;
use std::fmt::Write as _;

/// A file or function that is not known, as callgrind writes it.
const UNKNOWN: &str = "???";

/// The costs as a file of callgrind.
pub fn callgrind_text(of: &Costs) -> String {
    let mut out = String::from("# callgrind format\nversion: 1\ncreator: tdtool\n");
    let _ = writeln!(out, "cmd: {}", line(&of.command));
    for remark in &of.remarks {
        let _ = writeln!(out, "desc: Note: {}", line(remark));
    }
    let _ = writeln!(out, "positions: {}", of.positions);
    // Names of events are separated by blanks.
    let names: Vec<String> = of.events.iter().map(|e| line(e).replace(' ', "_")).collect();
    for (name, event) in names.iter().zip(&of.events).filter(|(name, event)| name != event) {
        let _ = writeln!(out, "event: {name} : {}", line(event));
    }
    let _ = writeln!(out, "events: {}", names.join(" "));
    let _ = writeln!(out, "summary: {}", numbers(&of.summary));
    let (mut object, mut file) = (None, None);
    for function in &of.functions {
        let id = &function.id;
        if object != Some(&id.object) {
            let _ = writeln!(out, "\nob={}", name(&id.object));
            (object, file) = (Some(&id.object), None);
        }
        if file != Some(&id.file) {
            let _ = writeln!(out, "fl={}", file_of(id));
            file = Some(&id.file);
        }
        let _ = writeln!(out, "fn={}", name(&id.name));
        let mut within = None;
        for one in &function.lines {
            if one.file != within {
                let back = id.file.as_deref().unwrap_or(UNKNOWN);
                let to = one.file.as_deref();
                let _ = match to {
                    Some(to) => writeln!(out, "fi={}", name(to)),
                    None => writeln!(out, "fe={}", name(back)),
                };
                within.clone_from(&one.file);
            }
            let _ = writeln!(out, "{} {}", one.position, numbers(&one.costs));
        }
        if within.is_some() {
            let _ = writeln!(out, "fe={}", file_of(id));
        }
        for call in &function.calls {
            let callee = &call.callee;
            // Without them callgrind_annotate takes the callee for another function.
            let (object, function) = (name(&callee.object), name(&callee.name));
            let _ = writeln!(out, "cob={object}\ncfi={}\ncfn={function}", file_of(callee));
            let _ = writeln!(out, "calls={} 0\n0 {}", call.count, numbers(&call.costs));
        }
    }
    out
}

fn numbers(costs: &[u64]) -> String {
    costs.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

fn file_of(id: &FunctionId) -> String {
    id.file.as_deref().map_or_else(|| UNKNOWN.to_owned(), name)
}

/// A name on one line. One that begins with `(` would be an abbreviation.
fn name(text: &str) -> String {
    let text = line(text);
    match text.is_empty() {
        true => UNKNOWN.to_owned(),
        false if text.starts_with('(') => format!(" {text}"),
        false => text,
    }
}

fn line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '_' } else { c }).collect()
}

/// A message of protocol buffers (protobuf.dev/programming-guides/encoding): only what profile.proto needs.
#[derive(Default)]
pub struct Message(pub Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A number; 0 is the default and left out.
    pub fn number(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.varint(field << 3);
            self.varint(value);
        }
    }

    /// Numbers of type int64 in one field.
    pub fn packed(&mut self, field: u64, values: impl Iterator<Item = u64>) {
        let mut all = Self::default();
        values.for_each(|value| all.varint(value.min(i64::MAX as u64)));
        self.bytes(field, &all.0);
    }

    /// Bytes, a text or a message.
    pub fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// A message of numbers.
    pub fn message(&mut self, field: u64, of: &[(u64, u64)]) {
        let mut inner = Self::default();
        of.iter().for_each(|(field, value)| inner.number(*field, *value));
        self.bytes(field, &inner.0);
    }
}

/// The strings of a profile; the first is empty.
pub struct Strings {
    all: Vec<String>,
    numbers: HashMap<String, u64>,
}

/// Only the empty one.
impl Default for Strings {
    fn default() -> Self {
        let mut strings = Self { all: Vec::new(), numbers: HashMap::new() };
        strings.number("");
        strings
    }
}

impl Strings {
    /// Writes all as a repeated field.
    pub fn write(&self, field: u64, out: &mut Message) {
        self.all.iter().for_each(|text| out.bytes(field, text.as_bytes()));
    }

    /// The number of a text.
    pub fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.all.len() as u64;
        self.all.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

/// Text for XML: markup escaped, and what XML 1.0 does not allow (§2.2) replaced.
pub(super) fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' => out.push_str("&#10;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if tma::text::is_unsafe(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
