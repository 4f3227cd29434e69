//! The statement that prefetches what a load of a source line will need some iterations later: its address with every
//! variable that counts the loop advanced, first in the loop's body, under the loop's own condition. That condition is
//! all that is known of an iteration ahead: an address for which memory is read must be needed by every iteration.

use super::counting::{Count, Relation, counting, lines, relations};
use super::harmless::{is_change, is_harmless, is_stored};
use super::syntax::{Access, Header, Loop, Source};
use loads::class::Kind as Class;
use loads::prefetch::Site;
use std::fmt;
use std::ops::Range;

/// A load in the source.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub line: u32,
    /// 0 or absent: not known.
    pub column: Option<u32>,
    /// How its addresses are made in the innermost loop.
    pub class: Option<Class>,
    /// Bytes of a stride.
    pub stride: Option<i64>,
    pub site: Site,
}

/// Why there is no such statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unwritten {
    /// No memory access is written on the line.
    NoAccess,
    /// It is in no loop of its function.
    NoLoop,
    /// The loop does not count: it is not `for (…; v < n; v++)`.
    NotCounting,
    /// The condition of the loop is not `v < n`.
    Condition,
    /// The address reads memory that not every iteration reads.
    Conditional,
    /// The address needs this function, which may change something.
    Call(String),
    /// The address follows pointers of this array or structure, which the loop itself writes.
    Written(String),
    /// The address has this variable, which changes in the loop in another way.
    Changing(String),
    /// The address is the same in all iterations.
    Constant,
}

impl fmt::Display for Unwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Changing(name) => {
                return write!(f, "`{name}`, of which its address is made, is not known ahead");
            }
            Self::Call(name) => {
                return write!(
                    f,
                    "its address needs `{name}`, which may change something: it is not called ahead"
                );
            }
            Self::Written(name) => {
                return write!(
                    f,
                    "its address is found by `{name}`, which the loop may write first"
                );
            }
            Self::NoAccess => "no memory access is written on its line",
            Self::NoLoop => "no loop of its source is around it",
            Self::NotCounting => "its loop is not written as `for (…; i < n; i++)`",
            Self::Condition => "the condition of its loop is not of the form `i < n`",
            Self::Conditional => {
                "its address reads memory that not each iteration reads (`if`, `break` or the like)"
            }
            Self::Constant => "nothing in its address counts with the loop",
        })
    }
}

/// A text with such a statement, `distance` iterations ahead; and the statement.
pub(super) fn inserted(
    text: &str,
    wanted: &Wanted,
    distance: u64,
) -> Result<(String, String), Unwritten> {
    let source = Source::new(text);
    let access = access(&source, wanted).ok_or(Unwritten::NoAccess)?;
    let loops = source.loops_around(access.tokens.start);
    let inner = loops.first().ok_or(Unwritten::NoLoop)?;
    let outer = loops.get(1).filter(|_| wanted.site == Site::Outer);
    let around = outer.unwrap_or(inner);
    let header = around.header.as_ref().ok_or(Unwritten::NotCounting)?;
    let counting = counting(&source, header.step.clone()).ok_or(Unwritten::NotCounting)?;
    let writer =
        Writer { source: &source, around, counting, distance, inner: outer.map(|_| inner) };
    let statement = writer.statement(&access, header, wanted)?;
    Ok((writer.placed(&statement), statement))
}

/// The access of the line that a load is most likely of: as computed as its class says, then next to its column, which
/// gcc has at the last bracket or arrow, and clang at the first name.
fn access(source: &Source<'_>, wanted: &Wanted) -> Option<Access> {
    let (start, _) = source.line(wanted.line);
    let column =
        wanted.column.filter(|column| *column > 0).map(|column| start + column as usize - 1);
    let bytes = |at: usize| source.tokens.get(at).map_or(0, |token| token.bytes.start);
    let far = |access: &Access| {
        let (begin, end) = (bytes(access.tokens.start), bytes(access.tokens.end));
        column.map_or(0, |at| match at {
            _ if at == begin || at == bytes(access.mark) => 0,
            _ if (begin..end).contains(&at) => 1,
            _ => 2 + at.abs_diff(begin).min(at.abs_diff(end)),
        })
    };
    let is_stride = wanted.class == Some(Class::Stride);
    let is_unlike = |access: &Access| source.is_computed(access) == is_stride;
    let all = source.on_line(wanted.line).filter_map(|at| source.access(at));
    all.min_by_key(|access| (is_unlike(access), far(access)))
}

/// As it is written, on one line.
fn plain(source: &Source<'_>, range: Range<usize>) -> String {
    let mut text = String::new();
    for at in range.clone() {
        text += source.word(at);
        text += gap(source, at, range.end);
    }
    text
}

/// Between a token and the next of a range.
fn gap(source: &Source<'_>, at: usize, end: usize) -> &'static str {
    let bytes = |at: usize| source.tokens.get(at).map(|token| token.bytes.clone());
    match (bytes(at), bytes(at + 1)) {
        (Some(own), Some(next)) if at + 1 < end && next.start > own.end => " ",
        _ => "",
    }
}

struct Writer<'a> {
    source: &'a Source<'a>,
    /// The loop that the statement is put into.
    around: &'a Loop,
    counting: Vec<Count>,
    distance: u64,
    /// The loop in it that is gone through ahead, too.
    inner: Option<&'a Loop>,
}

/// What went into a text for an iteration ahead.
#[derive(Default)]
struct Trace {
    /// Variables that are being replaced.
    within: Vec<String>,
    /// Reads of memory, where the access itself is and in all: marks, less accesses of which only the address is needed.
    own: i64,
    reads: i64,
    /// The names at the beginning of accesses that are read.
    read: Vec<String>,
    /// Where the access begins of which only the address is needed.
    wanted: Option<usize>,
    /// A replaced variable is not set in each iteration.
    is_conditional: bool,
}

impl Writer<'_> {
    fn statement(
        &self,
        access: &Access,
        header: &Header,
        wanted: &Wanted,
    ) -> Result<String, Unwritten> {
        let mut trace = Trace { wanted: Some(access.tokens.start), ..Trace::default() };
        let address = self.ahead(access.tokens.clone(), &mut trace)?;
        let prefetch = format!("__builtin_prefetch((const void *)&{address});");
        let own = |range| Ok(plain(self.source, range));
        let condition = self.condition(header, &self.counting, own)?;
        let is_same = |text: &str, range: &Range<usize>| text == plain(self.source, range.clone());
        let is_constant = is_same(&address, &access.tokens);
        let Some(inner) = self.inner else {
            if is_constant {
                return Err(Unwritten::Constant);
            }
            self.check(access, &trace)?;
            return Ok(format!("if ({condition}) {prefetch}"));
        };
        let header = inner.header.as_ref().ok_or(Unwritten::NotCounting)?;
        let counts = counting(self.source, header.step.clone()).ok_or(Unwritten::NotCounting)?;
        let init = self.ahead(header.init.clone(), &mut trace)?;
        let whole = self.ahead(header.condition.clone(), &mut trace)?;
        if is_constant && is_same(&init, &header.init) && is_same(&whole, &header.condition) {
            return Err(Unwritten::Constant);
        }
        self.check(access, &trace)?;
        let own =
            self.condition(header, &counts, |range| self.ahead(range, &mut Trace::default()))?;
        let step = lines(&counts, wanted.stride);
        let step = step.unwrap_or_else(|| plain(self.source, header.step.clone()));
        Ok(format!("if ({condition}) for ({init}; {own}; {step}) {prefetch}"))
    }

    /// Refuses to read what an iteration may not, or to follow a pointer that is not there yet.
    fn check(&self, access: &Access, trace: &Trace) -> Result<(), Unwritten> {
        let (source, body) = (self.source, &self.around.body);
        let mut read = trace.read.iter().filter(|_| trace.reads > 1);
        if let Some(name) = read.find(|name| is_stored(source, body, name)) {
            return Err(Unwritten::Written(name.clone()));
        }
        let is_skipped =
            || trace.own > 0 && source.is_conditional(body, access.tokens.start, self.inner);
        let is_safe = trace.reads <= 0
            || !trace.is_conditional
                && !is_skipped()
                && !source.is_left(body)
                && !self.inner.is_some_and(|inner| source.is_left(&inner.body));
        if is_safe { Ok(()) } else { Err(Unwritten::Conditional) }
    }

    /// The condition of a loop that iterations ahead, with bounds as `bound` writes them.
    fn condition(
        &self,
        header: &Header,
        counts: &[Count],
        bound: impl Fn(Range<usize>) -> Result<String, Unwritten>,
    ) -> Result<String, Unwritten> {
        let all = relations(self.source, header.condition.clone(), counts);
        let one = |relation: Relation| {
            let Relation { counter, mark, bound: range, is_mirrored } = relation;
            let counter = self.ahead(counter..counter + 1, &mut Trace::default())?;
            let bound = bound(range)?;
            let sides = if is_mirrored { [bound, counter] } else { [counter, bound] };
            Ok(sides.join(&format!(" {mark} ")))
        };
        let all: Result<Vec<String>, _> =
            all.ok_or(Unwritten::Condition)?.into_iter().map(one).collect();
        Ok(all?.join(" && "))
    }

    fn advanced(&self, count: &Count) -> String {
        let (name, distance) = (&count.name, self.distance);
        match count.by.as_ref().map(|by| (by, by.parse::<u64>())) {
            None => format!("{name} + {distance}"),
            Some((_, Ok(by))) => format!("{name} + {}", by.saturating_mul(distance)),
            Some((by, Err(_))) => format!("{name} + {distance} * ({by})"),
        }
    }

    /// A range of tokens as it will be that many iterations later: variables of the loop's body are replaced by what
    /// they are set to.
    fn ahead(&self, range: Range<usize>, trace: &mut Trace) -> Result<String, Unwritten> {
        let mut text = String::new();
        for at in range.clone() {
            let name = self.source.word(at);
            self.note(at, &range, trace)?;
            let own =
                self.source.is_variable(at).then_some(name).filter(|name| !self.is_inner(name));
            let count = own.and_then(|name| self.counting.iter().find(|count| count.name == name));
            match (own, count) {
                (_, Some(count)) => {
                    let whole = matches!(self.source.before(at), "[" | "(" | ",")
                        && matches!(self.source.word(at + 1), "]" | ")" | ",");
                    let advanced = self.advanced(count);
                    text += &if whole { advanced } else { format!("({advanced})") };
                }
                (Some(name), None) => text += &self.defined(name, trace)?,
                (None, None)
                    if matches!(name, "++" | "--" | "=" | "+=" | "-=")
                        && !trace.within.is_empty() =>
                {
                    return Err(Unwritten::Changing(name.to_owned()));
                }
                (None, None) => text += name,
            }
            text += gap(self.source, at, range.end);
        }
        Ok(text)
    }

    /// What the token of a range needs: calls, and reads of memory.
    fn note(&self, at: usize, range: &Range<usize>, trace: &mut Trace) -> Result<(), Unwritten> {
        let source = self.source;
        if let Some(name) = source.called(at).filter(|name| !is_harmless(source, name)) {
            return Err(Unwritten::Call(name.to_owned()));
        }
        let mut reads = i64::from(source.is_read(at));
        if source.is_read_by_several(at) {
            let all = range.clone().filter(|at| source.is_variable(*at));
            trace.read.extend(all.map(|at| source.word(at).to_owned()));
        }
        if let Some(access) = source.access(at) {
            let start = access.tokens.start;
            let is_address = trace.wanted == Some(start) || source.is_address_taken(start);
            reads -= i64::from(is_address && source.reads(&access) > 0);
            let is_read = source.reads(&access) > usize::from(is_address);
            trace.read.extend(is_read.then(|| source.word(at).to_owned()));
        }
        trace.reads += reads;
        trace.own += if trace.within.is_empty() { reads } else { 0 };
        Ok(())
    }

    /// Whether the loop that is gone through ahead declares or sets it itself.
    fn is_inner(&self, name: &str) -> bool {
        let header = self.inner.and_then(|inner| inner.header.as_ref());
        header.is_some_and(|header| {
            header
                .init
                .clone()
                .any(|at| self.source.word(at) == name && self.source.word(at + 1) == "=")
        })
    }

    /// What a variable is set to in the loop; itself, if nothing there changes it.
    fn defined(&self, name: &str, trace: &mut Trace) -> Result<String, Unwritten> {
        let changing = || Unwritten::Changing(name.to_owned());
        let mut set = self.around.body.clone().filter(|at| {
            self.source.word(*at) == name && self.source.is_variable(*at) && self.is_changed(*at)
        });
        let Some(only) = set.next() else { return Ok(name.to_owned()) };
        if set.next().is_some()
            || self.source.word(only + 1) != "="
            || trace.within.iter().any(|outer| outer == name)
        {
            return Err(changing());
        }
        let rest = self.source.split(only + 2..self.around.body.end, ";");
        let value = rest.first().cloned().ok_or_else(changing)?;
        let value = self.source.split(value, ",").first().cloned().ok_or_else(changing)?;
        trace.is_conditional |= self.source.is_conditional(&self.around.body, only, self.inner);
        trace.within.push(name.to_owned());
        let text = self.ahead(value, trace)?;
        trace.within.pop();
        Ok(format!("({text})"))
    }

    fn is_changed(&self, at: usize) -> bool {
        is_change(self.source.word(at + 1)) || matches!(self.source.before(at), "++" | "--")
    }

    /// The text with the statement first in the loop's body.
    fn placed(&self, statement: &str) -> String {
        let text = self.source.text;
        let body = &self.around.body;
        let byte =
            |at: usize| self.source.tokens.get(at).map_or(text.len(), |token| token.bytes.start);
        let is_block = self.source.word(body.start) == "{";
        let at = byte(body.start + usize::from(is_block));
        let indent = text[..at].rsplit('\n').next().unwrap_or_default();
        let is_first = indent.trim().is_empty();
        let (before, after) = text.split_at(at);
        let gap = if is_first { format!("\n{indent}") } else { " ".to_owned() };
        if is_block {
            return format!("{before}{statement}{gap}{after}");
        }
        let end = self.source.tokens.get(body.end - 1).map_or(at, |token| token.bytes.end);
        let (own, after) = (&text[at..end], &text[end..]);
        format!("{before}{{ {statement}{gap}{own} }}{after}")
    }
}
