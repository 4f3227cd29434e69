//! The functions, loops and blocks of one side with their times, from one report or several of the same program,
//! and the shape of a block: its instructions without what changes when code or data move.

use super::runs::interval;
use crate::documents::estimate::{Bottleneck, Part, Row, Share};
use crate::documents::report::Report;
use crate::documents::report_code::{BlockRow, FunctionRow};
use profile::event::EventKind;
use profile::hot::half_width;
use std::collections::HashMap;
use tma::Address;

/// Kind of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Program,
    Function,
    Loop,
    #[default]
    Block,
}

/// A row with its time.
#[derive(Debug, Clone, Default)]
pub(super) struct Timed {
    pub kind: Kind,
    /// Name of the function, also of a loop or block.
    pub name: String,
    pub short: String,
    /// File name.
    pub module: String,
    pub start: Option<Address>,
    pub end: Option<Address>,
    pub shape: Option<String>,
    pub line: Option<(String, u32)>,
    /// Milliseconds, or a share of the samples.
    pub value: Option<f64>,
    pub error: Option<f64>,
    /// Parts of an estimate in the unit of `value`: id, label, value and the ends of its interval.
    pub parts: Vec<(&'static str, &'static str, [f64; 3])>,
    pub level1: Option<[f64; 5]>,
    pub bottleneck: Option<Bottleneck>,
    pub cycles_per_entry: Option<f64>,
    pub entries: Option<f64>,
}

/// Whether the shares of a report are of a time that is known.
pub(super) fn has_time(report: &Report) -> bool {
    milliseconds(report).is_some()
}

/// The rows of one side, in milliseconds or as shares. Of several reports, those that all have.
pub(super) fn rows(reports: &[Report], in_time: bool) -> Vec<Timed> {
    let mut all = reports.iter().map(|report| of_report(report, in_time));
    let Some(mut first) = all.next() else { return Vec::new() };
    let others: Vec<HashMap<Key, Timed>> =
        all.map(|rows| rows.into_iter().map(|row| (row.key(), row)).collect()).collect();
    if others.is_empty() {
        return first;
    }
    first.retain_mut(|row| {
        let same: Option<Vec<&Timed>> = others.iter().map(|run| run.get(&row.key())).collect();
        same.map(|same| row.merge(&same)).is_some()
    });
    first
}

/// Identity of a row in runs of one program.
type Key = (Kind, String, String, Option<Address>);

impl Timed {
    fn key(&self) -> Key {
        (self.kind, self.name.clone(), self.module.clone(), self.start)
    }

    /// The mean of this row and those of other runs; its error is how they differ.
    fn merge(&mut self, others: &[&Timed]) {
        let values = std::iter::once(self.value).chain(others.iter().map(|row| row.value));
        (self.value, self.error) = interval(values);
        let runs = (others.len() + 1) as f64;
        for (number, (_, _, ends)) in self.parts.iter_mut().enumerate() {
            for (end, value) in ends.iter_mut().enumerate() {
                let of = |row: &&Timed| row.parts.get(number).map_or(*value, |part| part.2[end]);
                *value = (*value + others.iter().map(of).sum::<f64>()) / runs;
            }
        }
    }

    /// Adds the time of another copy of the function.
    pub fn take(&mut self, other: &Timed) {
        let both = |a: Option<f64>, b: Option<f64>| a.zip(b);
        self.error = both(self.error, other.error).map(|(a, b)| a.hypot(b));
        let (own, others) = (self.value.unwrap_or(0.0), other.value.unwrap_or(0.0));
        if others > own {
            // Values that cannot be added up are of the copy that takes longest.
            (self.level1, self.cycles_per_entry) = (other.level1, other.cycles_per_entry);
            (self.bottleneck, self.entries) = (other.bottleneck, other.entries);
        }
        self.value = both(self.value, other.value).map(|(a, b)| a + b);
        let ends = self.parts.iter_mut().map(|part| &mut part.2);
        for (ends, (_, _, others)) in ends.zip(&other.parts) {
            ends.iter_mut().zip(others).for_each(|(end, other)| *end += other);
        }
    }

    fn timed(mut self, report: &Report, share: f64, in_time: bool) -> Self {
        let scale = if in_time { milliseconds(report).unwrap_or(0.0) } else { 1.0 };
        let samples = report.sampled.as_ref().map(|sampled| sampled.samples as f64);
        self.value = Some(scale * share);
        self.error = samples.map(|samples| scale * half_width(share, samples));
        self
    }
}

/// Time that shares are of; none where the samples are not of time.
fn milliseconds(report: &Report) -> Option<f64> {
    let event = report.sampled.as_ref().map_or("", |sampled| sampled.event.as_str());
    let is_time = EventKind::of(&event.to_lowercase()) != EventKind::Other;
    if !is_time && report.estimate.is_none() {
        return None;
    }
    let task = report.software.get("task_clock_ms").copied().flatten();
    task.or(report.duration.map(|seconds| 1e3 * seconds)).filter(|time| *time > 0.0)
}

fn of_report(report: &Report, in_time: bool) -> Vec<Timed> {
    let timed = |row: Timed, share: f64| row.timed(report, share, in_time);
    if let Some(estimate) = &report.estimate {
        let of = |kind, row: &Row| {
            let mut of = timed(estimated(kind, row), row.share);
            of.parts = parts(row, &of);
            of
        };
        let program = estimate.covered > 0.0;
        let program = program.then(|| {
            let all = Row { share: estimate.covered, ..estimate.program.clone() };
            of(Kind::Program, &all)
        });
        let functions = estimate.functions.iter().map(|row| of(Kind::Function, row));
        let loops = estimate.loops.iter().map(|row| of(Kind::Loop, row));
        let blocks = estimate.blocks_outside_of_loops().map(|(_, row)| of(Kind::Block, row));
        return program.into_iter().chain(functions).chain(loops).chain(blocks).collect();
    }
    let functions = report.functions.iter().map(|row| timed(sampled(row), row.share));
    functions.chain(report.blocks.iter().map(|row| timed(block(row), row.code.share))).collect()
}

fn estimated(kind: Kind, row: &Row) -> Timed {
    let hottest = row.code.iter().max_by_key(|one| one.samples);
    let is_divided = row.start.is_some() || kind == Kind::Program;
    Timed {
        start: row.start,
        end: row.end,
        shape: (!row.code.is_empty()).then(|| shape(row.code.iter().map(|one| one.text.as_str()))),
        line: hottest.and_then(|one| one.source.clone()),
        level1: is_divided.then(|| row.parts.level1()),
        bottleneck: is_divided.then_some(row.bottleneck),
        cycles_per_entry: row.cycles_per_entry,
        entries: row.entries,
        ..Timed::named(kind, &row.name, None, &row.module)
    }
}

/// The parts of a row's time; their intervals are those of the shares and of the time.
fn parts(row: &Row, of: &Timed) -> Vec<(&'static str, &'static str, [f64; 3])> {
    let Some(value) = of.value.filter(|_| of.level1.is_some()) else { return Vec::new() };
    let error = of.error.unwrap_or(0.0);
    let part = |(of, share): (Part, &Share)| {
        let ends = [share.value * value, share.low * value, share.high * value];
        let more = share.value * error;
        let below = (ends[0] - ends[1]).hypot(more);
        let above = (ends[2] - ends[0]).hypot(more);
        (of.name(), of.label(), [ends[0], ends[0] - below, ends[0] + above])
    };
    row.parts.iter().map(part).collect()
}

fn sampled(row: &FunctionRow) -> Timed {
    let short = (!row.short.is_empty()).then_some(row.short.as_str());
    Timed::named(Kind::Function, &row.name, short, &row.module)
}

fn block(row: &BlockRow) -> Timed {
    let code = &row.code;
    let short = (!code.function_short.is_empty()).then_some(code.function_short.as_str());
    Timed {
        start: Some(code.start),
        end: Some(code.end),
        shape: row.shape.clone(),
        line: code.file.clone().zip(code.line),
        cycles_per_entry: row.cycles_per_entry,
        entries: row.entries,
        ..Timed::named(Kind::Block, &code.function, short, &code.module)
    }
}

impl Timed {
    fn named(kind: Kind, name: &str, short: Option<&str>, module: &str) -> Self {
        let plain = name.split_once('(').map_or(name, |(before, _)| before);
        let plain = if plain.is_empty() { name } else { plain };
        Self {
            kind,
            name: name.to_owned(),
            short: short.unwrap_or(plain).to_owned(),
            module: module.rsplit('/').next().unwrap_or(module).to_owned(),
            ..Self::default()
        }
    }
}

/// Smallest constant that is taken for an address.
const ADDRESS: u64 = 0x1000;

/// Instructions without addresses, separated by `; `.
///
/// ```
/// use report::documents::diff::timed::shape;
///
/// let of = |text: &[&str]| shape(text.iter().copied());
/// assert_eq!(of(&["add rax,[rip+2f10h]", "jne 0x1140"]), of(&["add rax,[rip+2e08h]", "jne 0x1150"]));
/// assert_ne!(of(&["add rax,8"]), of(&["add rax,16"]));
/// ```
pub fn shape<'a>(instructions: impl Iterator<Item = &'a str>) -> String {
    instructions.map(one).collect::<Vec<_>>().join("; ")
}

/// The mnemonics of a shape.
pub(super) fn mnemonics(shape: &str) -> String {
    let first = |text: &str| text.split(' ').next().unwrap_or_default().to_owned();
    shape.split("; ").map(first).collect::<Vec<_>>().join("; ")
}

/// An instruction without addresses: targets of branches, what is relative to `rip`, large constants.
fn one(text: &str) -> String {
    let (mnemonic, operands) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    let is_branch = mnemonic.starts_with('j') || mnemonic.starts_with("loop") || mnemonic == "call";
    if is_branch && number(operands.rsplit(' ').next().unwrap_or_default()).is_some() {
        return mnemonic.to_owned();
    }
    let mut out = format!("{mnemonic} ");
    let mut rest = operands;
    while let Some(at) = rest.find('[') {
        let (before, inside) = rest.split_at(at);
        let end = inside.find(']').map_or(inside.len(), |end| end + 1);
        out += &constants(before);
        let inner = inside[1..end].trim_start();
        let fixed = inner.starts_with("rip") || inner.starts_with("rel ") || is_digit(inner);
        out += if fixed { "[#]" } else { &inside[..end] };
        rest = &inside[end..];
    }
    (out + &constants(rest)).trim_end().to_owned()
}

fn is_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

/// The operands with `#` in place of what may be an address.
fn constants(text: &str) -> String {
    let word = |word: &str| match number(word) {
        Some(value) if value >= ADDRESS => "#".to_owned(),
        _ => word.to_owned(),
    };
    text.split(',').map(word).collect::<Vec<_>>().join(",")
}

/// A number as disassemblers write it: `0x1f`, `1fh`, `31`.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    match (text.strip_prefix("0x"), text.strip_suffix(['h', 'H'])) {
        (Some(hex), _) => u64::from_str_radix(hex, 16).ok(),
        (_, Some(hex)) if is_digit(hex) => u64::from_str_radix(hex, 16).ok(),
        _ => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_is_left_out_and_what_computes_is_not() {
        let cases = [
            ("jne 0x1140", "jne"),
            ("jne short 00001140h", "jne"),
            ("jmp rax", "jmp rax"),
            ("call qword ptr [rip+0x2fe0]", "call qword ptr [#]"),
            ("lea rdi,[0x2004]", "lea rdi,[#]"),
            ("mov edi,0x404040", "mov edi,#"),
            ("mov eax,dword ptr [rdi+rcx*4+0x10]", "mov eax,dword ptr [rdi+rcx*4+0x10]"),
            ("imul rax,rax,0x1f", "imul rax,rax,0x1f"),
            ("mov eax,dword ptr [rdi", "mov eax,dword ptr [rdi"),
            ("ret", "ret"),
            ("", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(one(text), expected, "{text}");
        }
        assert_eq!(mnemonics("mov eax,#; add eax,1; jne"), "mov; add; jne");
    }
}
