//! The statement that prefetches what a load of a source line will need some iterations later: its address with every
//! variable that counts the loop advanced, under the loop's own condition, so that no iteration is prefetched for that
//! will not be.

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
            Self::NoAccess => "no memory access is written on its line",
            Self::NoLoop => "no loop of its source is around it",
            Self::NotCounting => "its loop is not written as `for (…; i < n; i++)`",
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
    let counting = counting(&source, header).ok_or(Unwritten::NotCounting)?;
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

/// A variable that counts, and by how much.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Count {
    name: String,
    is_down: bool,
    /// Absent: 1.
    by: Option<String>,
}

/// The variables that the step of a loop advances, if its condition has one of them.
fn counting(source: &Source<'_>, header: &Header) -> Option<Vec<Count>> {
    let one = |piece: Range<usize>| -> Option<Count> {
        let words: Vec<&str> = piece.clone().map(|at| source.word(at)).collect();
        let (name, mark) = match &words[..] {
            [name, mark @ ("++" | "--")] | [mark @ ("++" | "--"), name] => (name, mark),
            [name, mark @ ("+=" | "-="), ..] => (name, mark),
            _ => return None,
        };
        let by = piece.start + 2..piece.end;
        let by = (!by.is_empty()).then(|| plain(source, by));
        Some(Count { name: (*name).to_owned(), is_down: mark.starts_with('-'), by })
    };
    let all: Option<Vec<Count>> =
        source.split(header.step.clone(), ",").into_iter().map(one).collect();
    let all = all?;
    let mut condition = header.condition.clone();
    condition.any(|at| all.iter().any(|one| source.word(at) == one.name)).then_some(all)
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

/// Bytes of a cache line.
const LINE: u64 = 64;

impl Writer<'_> {
    fn statement(
        &self,
        access: &Access,
        header: &Header,
        wanted: &Wanted,
    ) -> Result<String, Unwritten> {
        let address = self.ahead(access.tokens.clone(), &mut Vec::new())?;
        let prefetch = format!("__builtin_prefetch((const void *)&{address});");
        let condition = self.condition(header);
        let is_same = |text: &str, range: &Range<usize>| text == plain(self.source, range.clone());
        let is_constant = is_same(&address, &access.tokens);
        let Some(inner) = self.inner else {
            let whole = format!("if ({condition}) {prefetch}");
            return if is_constant { Err(Unwritten::Constant) } else { Ok(whole) };
        };
        let header = inner.header.as_ref().ok_or(Unwritten::NotCounting)?;
        let init = self.ahead(header.init.clone(), &mut Vec::new())?;
        let own = self.ahead(header.condition.clone(), &mut Vec::new())?;
        if is_constant && is_same(&init, &header.init) && is_same(&own, &header.condition) {
            return Err(Unwritten::Constant);
        }
        let step = counting(self.source, header).and_then(|all| lines(&all, wanted.stride));
        let step = step.unwrap_or_else(|| plain(self.source, header.step.clone()));
        Ok(format!("if ({condition}) for ({init}; {own}; {step}) {prefetch}"))
    }

    /// The condition of that iteration. A loop that ends at a value would be past it.
    fn condition(&self, header: &Header) -> String {
        let range = header.condition.clone();
        let mut text = String::new();
        for at in range.clone() {
            let count = self.counting.iter().find(|count| count.name == self.source.word(at));
            match count.filter(|_| self.source.is_variable(at)) {
                Some(count) => text += &format!("({})", self.advanced(count)),
                None => text += self.relation(at),
            }
            text += gap(self.source, at, range.end);
        }
        text
    }

    /// A token of the condition: `v != n` is `v < n` of one that counts up.
    fn relation(&self, at: usize) -> &str {
        let word = self.source.word(at);
        let before = self.counting.iter().find(|count| count.name == self.source.before(at));
        match (word, before.map(|count| count.is_down)) {
            ("!=", Some(false)) => "<",
            ("!=", Some(true)) => ">",
            _ => word,
        }
    }

    fn advanced(&self, count: &Count) -> String {
        let sign = if count.is_down { '-' } else { '+' };
        let distance = self.distance;
        match count.by.as_ref().map(|by| (by, by.parse::<u64>())) {
            None => format!("{} {sign} {distance}", count.name),
            Some((_, Ok(by))) => format!("{} {sign} {}", count.name, by.saturating_mul(distance)),
            Some((by, Err(_))) => format!("{} {sign} {distance} * ({by})", count.name),
        }
    }

    /// A range of tokens as it will be that many iterations later: variables of the loop's body are replaced by what
    /// they are set to. `within` are those being replaced.
    fn ahead(&self, range: Range<usize>, within: &mut Vec<String>) -> Result<String, Unwritten> {
        let mut text = String::new();
        for at in range.clone() {
            let name = self.source.word(at);
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
                (Some(name), None) => text += &self.defined(name, within)?,
                (None, None)
                    if matches!(name, "++" | "--" | "=" | "+=" | "-=") && !within.is_empty() =>
                {
                    return Err(Unwritten::Changing(name.to_owned()));
                }
                (None, None) => text += name,
            }
            text += gap(self.source, at, range.end);
        }
        Ok(text)
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
    fn defined(&self, name: &str, within: &mut Vec<String>) -> Result<String, Unwritten> {
        let changing = || Unwritten::Changing(name.to_owned());
        let mut set = self.around.body.clone().filter(|at| {
            self.source.word(*at) == name && self.source.is_variable(*at) && self.is_changed(*at)
        });
        let Some(only) = set.next() else { return Ok(name.to_owned()) };
        if set.next().is_some()
            || self.source.word(only + 1) != "="
            || within.contains(&name.to_owned())
        {
            return Err(changing());
        }
        let rest = self.source.split(only + 2..self.around.body.end, ";");
        let value = rest.first().cloned().ok_or_else(changing)?;
        let value = self.source.split(value, ",").first().cloned().ok_or_else(changing)?;
        within.push(name.to_owned());
        let text = self.ahead(value, within)?;
        within.pop();
        Ok(format!("({text})"))
    }

    fn is_changed(&self, at: usize) -> bool {
        let after = self.source.word(at + 1);
        let is_assigned = after == "=" || after == "++" || after == "--";
        let is_updated =
            after.len() >= 2 && after.ends_with('=') && !matches!(after, "==" | "!=" | "<=" | ">=");
        is_assigned || is_updated || matches!(self.source.before(at), "++" | "--")
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

/// The step of a loop that goes from one cache line to the next, if several of its iterations are in one.
fn lines(all: &[Count], stride: Option<i64>) -> Option<String> {
    let [Count { name, is_down, by: None }] = all else { return None };
    let within = LINE.checked_div(stride?.unsigned_abs())?;
    let sign = if *is_down { '-' } else { '+' };
    (within > 1).then(|| format!("{name} {sign}= {within}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(line: u32, column: u32, class: Class, site: Site) -> Wanted {
        Wanted { line, column: Some(column), class: Some(class), stride: None, site }
    }

    fn statement(text: &str, wanted: &Wanted) -> Result<String, Unwritten> {
        inserted(text, wanted, 8).map(|(_, statement)| statement)
    }

    #[test]
    fn an_indirect_access_is_prefetched_under_the_condition_of_its_loop() {
        let text = "void f() {\n  for (long i = 0; i < n; i++) {\n    sum += data[index[i]] ^ x[i];\n  }\n}\n";
        for column in [12, 16] {
            let (new, statement) =
                inserted(text, &wanted(3, column, Class::Indirect, Site::Inner), 8).unwrap();
            assert_eq!(
                statement,
                "if ((i + 8) < n) __builtin_prefetch((const void *)&data[index[i + 8]]);"
            );
            assert_eq!(new, text.replace("    sum", &format!("    {statement}\n    sum")));
        }
        let stride = statement(text, &wanted(3, 29, Class::Stride, Site::Inner)).unwrap();
        assert!(stride.ends_with("&x[i + 8]);"), "{stride}");
    }

    #[test]
    fn variables_of_the_body_are_replaced() {
        let text = "for (i = 0; i != n; i += 2) { const struct b *one = &t[H(k[i])];\n found += one->key; }";
        assert_eq!(
            statement(text, &wanted(2, 11, Class::Complex, Site::Inner)).unwrap(),
            "if ((i + 16) < n) __builtin_prefetch((const void *)&(&t[H(k[i + 16])])->key);"
        );
        let text = "for (i = 0; i < n; i++) {\n x = x * 3; s += a[x]; }";
        assert_eq!(
            statement(text, &wanted(2, 18, Class::Complex, Site::Inner)),
            Err(Unwritten::Changing("x".into()))
        );
    }

    #[test]
    fn the_inner_loop_is_gone_through_ahead() {
        let text = "for (r = 0; r < m; r++)\n for (uint32_t j = row[r]; j < row[r + 1]; j++) s += x[col[j]];";
        let (new, statement) =
            inserted(text, &wanted(2, 55, Class::Indirect, Site::Outer), 8).unwrap();
        assert_eq!(
            statement,
            "if ((r + 8) < m) for (uint32_t j = row[r + 8]; j < row[(r + 8) + 1]; j++) \
             __builtin_prefetch((const void *)&x[col[j]]);"
        );
        let whole = text.replace(" for (uint32_t", &format!(" {{ {statement}\n for (uint32_t"));
        assert_eq!(new, format!("{whole} }}"));
    }

    #[test]
    fn loops_that_do_not_count_are_refused() {
        let at = |text: &str| statement(text, &wanted(1, 0, Class::Indirect, Site::Inner));
        assert_eq!(at("while (p) { s += a[p->x]; p = p->next; }"), Err(Unwritten::NotCounting));
        assert_eq!(at("s += a[b[i]];"), Err(Unwritten::NoLoop));
        assert_eq!(at("for (i = 0; i < n; i++) s += t;"), Err(Unwritten::NoAccess));
        assert_eq!(at("for (i = 0; i < n; i++) s += t[u[k]];"), Err(Unwritten::Constant));
        assert_eq!(at("for (;;) s += t[u[k]];"), Err(Unwritten::NotCounting));
    }
}
