//! Symbols as disjoint ranges: from what a symbol table says to what lies at an address.

use super::Function;
use super::demangle::{demangle, demangle_short};
use std::cmp::Reverse;
use std::collections::HashMap;

/// How a symbol is bound: of several at one address, some say more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binding {
    Local,
    Global,
    Weak,
}

/// One symbol.
#[derive(Debug, Clone)]
pub(super) struct Symbol {
    pub start: u64,
    /// 0: unknown.
    pub size: u64,
    pub binding: Binding,
    /// A label (`STT_NOTYPE`): assemblers make some that are no functions.
    pub label: bool,
    pub name: Box<str>,
}

/// What lies in a range where there is no symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Guess {
    pub start: u64,
    pub end: u64,
}

/// A section (or segment, where there are none) of code.
#[derive(Debug, Clone)]
pub(super) struct CodeRange {
    pub name: String,
    pub start: u64,
    pub end: u64,
}

/// What a piece belongs to.
#[derive(Debug, Clone, Copy)]
enum Owner {
    /// The symbol at this index.
    Symbol(u32),
    /// No symbol; the piece is the whole function.
    Guess,
}

/// A part of a function: symbols may lie inside each other.
#[derive(Debug, Clone, Copy)]
struct Piece {
    start: u64,
    end: u64,
    owner: Owner,
}

/// The functions of a module, by address.
#[derive(Debug, Default)]
pub(super) struct Table {
    symbols: Vec<Symbol>,
    code: Vec<CodeRange>,
    pieces: Vec<Piece>,
    /// Names are shown as they are.
    verbatim: bool,
    /// Made when they are asked for first: names are demangled then.
    made: HashMap<usize, Function>,
}

impl Table {
    /// Functions by symbols; where none is, by `guesses` (unwind tables), and where there is none
    /// either, the rest of the section. All of them in `code`.
    pub fn new(symbols: Vec<Symbol>, mut guesses: Vec<Guess>, mut code: Vec<CodeRange>) -> Self {
        code.retain(|range| range.start < range.end);
        code.sort_by_key(|range| range.start);
        guesses.retain(|guess| guess.start < guess.end);
        guesses.sort_by_key(|guess| (guess.start, Reverse(guess.end)));
        let symbols = with_ends(one_each(symbols), &guesses, &code);
        let spans = symbols.iter().map(|s| (s.start, s.start.saturating_add(s.size)));
        let named = flatten(spans, |index| Owner::Symbol(index as u32));
        let inside = guesses.iter().filter_map(|guess| {
            let range = containing(&code, guess.start)?;
            Some((guess.start, guess.end.min(range.end)))
        });
        let known = fill(named, flatten(inside, |_| Owner::Guess));
        let rest = flatten(code.iter().map(|c| (c.start, c.end)), |_| Owner::Guess);
        let pieces = fill(known, rest);
        Self { symbols, code, pieces, verbatim: false, made: HashMap::new() }
    }

    /// The same with names as they are: no compiler has mangled them.
    pub fn verbatim(mut self) -> Self {
        self.verbatim = true;
        self
    }

    /// The function at `address`.
    pub fn function(&mut self, address: u64) -> Option<&Function> {
        let after = self.pieces.partition_point(|piece| piece.start <= address);
        let piece = *self.pieces.get(after.checked_sub(1)?)?;
        if address >= piece.end {
            return None;
        }
        // Pieces of one symbol share a function: they are counted behind those without a symbol.
        let key = match piece.owner {
            Owner::Symbol(index) => self.pieces.len() + index as usize,
            Owner::Guess => after - 1,
        };
        if !self.made.contains_key(&key) {
            let function = self.make(piece)?;
            self.made.insert(key, function);
        }
        self.made.get(&key)
    }

    fn make(&self, piece: Piece) -> Option<Function> {
        match piece.owner {
            Owner::Symbol(index) => {
                let symbol = self.symbols.get(index as usize)?;
                let (name, short) = match self.verbatim {
                    true => (symbol.name.to_string(), symbol.name.to_string()),
                    false => written(&symbol.name),
                };
                Some(Function {
                    name,
                    short,
                    linkage: Some(symbol.name.to_string()),
                    start: symbol.start,
                    end: symbol.start.saturating_add(symbol.size),
                    named: true,
                })
            }
            Owner::Guess => {
                let range = containing(&self.code, piece.start)?;
                let name = format!("{}+{:#x}", range.name, piece.start - range.start);
                let Piece { start, end, .. } = piece;
                Some(Function {
                    short: name.clone(),
                    name,
                    linkage: None,
                    start,
                    end,
                    named: false,
                })
            }
        }
    }
}

/// A name as it was written: demangled, without the version that linkers append (`name@VERSION`,
/// `name@@VERSION`); and the same without parameters.
fn written(linkage: &str) -> (String, String) {
    let linkage = match linkage.find('@') {
        Some(at) if at > 0 && !linkage.ends_with("@plt") => &linkage[..at],
        _ => linkage,
    };
    let name = demangle(linkage);
    // Only C++ has parameters in its names.
    let short = if name.contains('(') { demangle_short(linkage) } else { name.clone() };
    (name, short)
}

/// The first range that holds `address`.
fn containing(code: &[CodeRange], address: u64) -> Option<&CodeRange> {
    let after = code.partition_point(|range| range.start <= address);
    code[..after].iter().rev().find(|range| address < range.end)
}

/// One symbol for each address, in order: the one that says most.
///
/// The order of preference is that of `perf report`, so that names agree: one with a size; one
/// that is not weak; a global one; the one with fewer underscores in front; the longer name.
fn one_each(mut symbols: Vec<Symbol>) -> Vec<Symbol> {
    let worth = |s: &Symbol| {
        let underscores = s.name.bytes().take_while(|&byte| byte == b'_').count();
        let (weak, global) = (s.binding == Binding::Weak, s.binding == Binding::Global);
        (s.size == 0, weak, !global, underscores, Reverse(s.name.len()))
    };
    symbols.sort_by(|a, b| (a.start, worth(a), &a.name).cmp(&(b.start, worth(b), &b.name)));
    symbols.dedup_by_key(|symbol| symbol.start);
    symbols
}

/// Gives those without a size one: up to the end of the unwind entry that begins there, else up to
/// the next symbol or the end of the section. Labels inside a function are dropped.
fn with_ends(symbols: Vec<Symbol>, guesses: &[Guess], code: &[CodeRange]) -> Vec<Symbol> {
    let mut ended: Vec<Symbol> = Vec::with_capacity(symbols.len());
    let mut reached = 0; // Behind the furthest symbol with a size so far.
    let starts: Vec<u64> = symbols.iter().map(|symbol| symbol.start).collect();
    for (index, mut symbol) in symbols.into_iter().enumerate() {
        if symbol.size == 0 && symbol.label && symbol.start < reached {
            continue;
        }
        if symbol.size == 0 {
            let next = starts.get(index + 1).copied().unwrap_or(u64::MAX);
            let section = containing(code, symbol.start).map_or(symbol.start, |range| range.end);
            let unwound = guesses.partition_point(|guess| guess.start < symbol.start);
            let unwound = guesses.get(unwound).filter(|guess| guess.start == symbol.start);
            let end = unwound.map_or(next.min(section), |guess| guess.end.min(section));
            symbol.size = end.saturating_sub(symbol.start);
        } else {
            reached = reached.max(symbol.start.saturating_add(symbol.size));
        }
        if symbol.size > 0 {
            ended.push(symbol);
        }
    }
    ended
}

/// Disjoint pieces of ranges that come in order of their starts; inside each other, the one that
/// starts last has the address.
fn flatten(ranges: impl Iterator<Item = (u64, u64)>, owner: impl Fn(usize) -> Owner) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut open: Vec<(u64, Owner)> = Vec::new(); // Ends of ranges around `reached`.
    let mut reached = 0;
    for (index, (start, end)) in ranges.enumerate() {
        close(&mut open, &mut pieces, &mut reached, start);
        reached = reached.max(start);
        open.push((end, owner(index)));
    }
    close(&mut open, &mut pieces, &mut reached, u64::MAX);
    pieces
}

/// Emits what open ranges have between `reached` and `to`.
fn close(open: &mut Vec<(u64, Owner)>, pieces: &mut Vec<Piece>, reached: &mut u64, to: u64) {
    while let Some(&(end, owner)) = open.last() {
        let until = end.min(to);
        if *reached < until {
            pieces.push(Piece { start: *reached, end: until, owner });
            *reached = until;
        }
        if end > to {
            return;
        }
        open.pop();
    }
}

/// `upper`, and of `lower` what it leaves free; both in order and disjoint.
fn fill(upper: Vec<Piece>, lower: Vec<Piece>) -> Vec<Piece> {
    let mut free = Vec::new();
    let mut next = 0;
    for piece in lower {
        let mut start = piece.start;
        while upper.get(next).is_some_and(|above| above.end <= start) {
            next += 1;
        }
        let mut above = next;
        while start < piece.end {
            let gap_end = upper.get(above).map_or(piece.end, |a| a.start.min(piece.end));
            if start < gap_end {
                free.push(Piece { start, end: gap_end, owner: piece.owner });
            }
            let Some(over) = upper.get(above) else { break };
            start = start.max(over.end);
            above += 1;
        }
    }
    free.extend(upper);
    free.sort_by_key(|piece| piece.start);
    free
}

#[cfg(test)]
#[path = "table/tests.rs"]
mod tests;
