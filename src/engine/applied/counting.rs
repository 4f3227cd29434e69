//! Loops that count up, and whether an iteration ahead is one of theirs.

use super::syntax::Source;
use std::ops::Range;

/// Bytes of a cache line.
const LINE: u64 = 64;

/// A variable that counts up, and by how much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Count {
    pub name: String,
    /// A number or a variable. Absent: 1.
    pub by: Option<String>,
}

/// The variables that the step of a loop advances.
pub(super) fn counting(source: &Source<'_>, step: Range<usize>) -> Option<Vec<Count>> {
    let one = |piece: Range<usize>| -> Option<Count> {
        let words: Vec<&str> = piece.clone().map(|at| source.word(at)).collect();
        let (name, by) = match &words[..] {
            [name, "++"] | ["++", name] => (name, None),
            [name, "+=", by] => (name, Some((*by).to_owned())),
            _ => return None,
        };
        Some(Count { name: (*name).to_owned(), by })
    };
    source.split(step, ",").into_iter().map(one).collect()
}

/// `v < bound` of a condition, or `bound > v`.
pub(super) struct Relation {
    pub counter: usize,
    pub mark: &'static str,
    pub bound: Range<usize>,
    pub is_mirrored: bool,
}

/// The relations that a condition is made of, all of which hold in an iteration ahead if the loop gets there; a loop
/// that ends at a value, `v != n`, would be past it. There are none if the condition has anything else.
pub(super) fn relations(
    source: &Source<'_>,
    condition: Range<usize>,
    counts: &[Count],
) -> Option<Vec<Relation>> {
    let count = |at: usize| {
        let mut counts = counts.iter().filter(|_| source.is_variable(at));
        counts.find(|count| count.name == source.word(at))
    };
    let is_plain = |at: usize| match source.word(at) {
        "+" | "-" | "*" | "/" | "%" | "<<" | ">>" | "." | "->" | "[" | "]" | ")" => true,
        "(" => match source.before(at) {
            "size" => source.word(at + 1) == ")",
            before => before == "sizeof" || !source.is_name(at - 1),
        },
        "and" | "or" | "not" | "not_eq" => false,
        _ => count(at).is_none() && source.tokens.get(at).is_some_and(|it| it.kind.is_value()),
    };
    let one = |piece: Range<usize>| {
        let (start, end) = (piece.start, piece.end);
        let is_mirrored = count(start).is_none();
        let (counter, mark, bound) = match is_mirrored {
            _ if end < start + 3 => return None,
            false => (start, start + 1, start + 2..end),
            true => (end - 1, end - 2, start..end - 2),
        };
        let by = &count(counter)?.by;
        let is_number = by.as_ref().is_none_or(|by| by.parse::<u64>().is_ok());
        let mark = match (source.word(mark), is_mirrored) {
            ("<", false) => "<",
            ("<=", false) => "<=",
            (">", true) => ">",
            (">=", true) => ">=",
            ("!=", false) if is_number => "<",
            ("!=", true) if is_number => ">",
            _ => return None,
        };
        bound.clone().all(is_plain).then_some(Relation { counter, mark, bound, is_mirrored })
    };
    source.split(condition, "&&").into_iter().map(one).collect()
}

/// The step of a loop that goes from one cache line to the next, if several of its iterations are in one.
pub(super) fn lines(all: &[Count], stride: Option<i64>) -> Option<String> {
    let [Count { name, by: None }] = all else { return None };
    let within = LINE.checked_div(stride?.unsigned_abs())?;
    (within > 1).then(|| format!("{name} += {within}"))
}
