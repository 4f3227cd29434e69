//! Symbols as disjoint ranges: from a symbol table to the function at an address. Also functions and source lines
//! as data.

#[cfg(test)]
mod tests;

use super::demangle::{demangle, demangle_short};
use isa::program::{nameless, preference};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

/// A function, or a range of code without a symbol.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Function {
    /// Demangled name; for code without a symbol its file and address (`sort+0x4327`).
    pub name: String,
    /// The name without parameters and return type, as `perf report` prints it.
    pub short: String,
    /// Name in the symbol table, if there is one.
    pub linkage: Option<String>,
    /// First address (p_vaddr).
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// Whether a symbol gives name and range; otherwise the range is inferred from unwind tables or
    /// sections.
    pub named: bool,
}

/// A source line, and the function it was inlined from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// Source file.
    pub file: Option<String>,
    /// Line, from 1.
    pub line: Option<u32>,
    /// Column, from 1.
    pub column: Option<u32>,
    /// Inlined function that the line belongs to, demangled; `None` if not inlined.
    pub inlined: Option<String>,
}

/// Binding of a symbol; decides between several at one address.
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
    /// Size in bytes; 0 if unknown.
    pub size: u64,
    pub binding: Binding,
    /// Whether it is a label (`STT_NOTYPE`), which may be no function.
    pub label: bool,
    pub name: Box<str>,
}

/// Owner of a piece.
#[derive(Debug, Clone, Copy)]
enum Owner {
    /// The symbol at this index.
    Symbol(u32),
    /// No symbol; the piece is the whole function.
    Guess,
}

/// A part of a function: symbols may be nested.
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
    pieces: Vec<Piece>,
    /// The name of its file, for code without a symbol.
    file: String,
    /// Whether names are printed without demangling.
    verbatim: bool,
    /// Functions looked up so far; names are demangled on first use.
    made: HashMap<usize, Function>,
}

impl Table {
    /// Functions by symbols, between them by `guesses` (functions of the unwind table), and the remaining ranges of
    /// `code` (sections, or segments in files without sections).
    pub fn new(
        symbols: Vec<Symbol>,
        mut guesses: Vec<Range<u64>>,
        mut code: Vec<Range<u64>>,
    ) -> Self {
        code.retain(|range| !range.is_empty());
        code.sort_by_key(|range| range.start);
        guesses.retain(|guess| !guess.is_empty());
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
        Self { symbols, pieces, ..Self::default() }
    }

    /// The table of the file with this name.
    pub fn of_file(mut self, name: &str) -> Self {
        name.clone_into(&mut self.file);
        self
    }

    /// The table with names that are not demangled.
    pub fn verbatim(mut self) -> Self {
        self.verbatim = true;
        self
    }

    /// The functions that symbols name: their names there and ranges, in order of address.
    pub fn named(&self) -> impl Iterator<Item = (&str, Range<u64>)> {
        let range = |s: &Symbol| s.start..s.start.saturating_add(s.size);
        self.symbols.iter().map(move |symbol| (&*symbol.name, range(symbol)))
    }

    /// The function at `address`.
    pub fn function(&mut self, address: u64) -> Option<&Function> {
        let after = self.pieces.partition_point(|piece| piece.start <= address);
        let piece = *self.pieces.get(after.checked_sub(1)?)?;
        if address >= piece.end {
            return None;
        }
        // Pieces of one symbol share a function; its key follows those of pieces without a symbol.
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
                let shown = tma::text::name(&symbol.name);
                let (name, short) = match self.verbatim {
                    true => (shown.to_string(), shown.to_string()),
                    false => written(&shown),
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
                let name = nameless(&self.file, piece.start);
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

/// The demangled name without the linker's version (`name@VERSION`, `name@@VERSION`), and the same
/// without parameters.
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

/// The range that contains `address`.
fn containing(code: &[Range<u64>], address: u64) -> Option<&Range<u64>> {
    let after = code.partition_point(|range| range.start <= address);
    code[..after].iter().rev().find(|range| address < range.end)
}

/// One symbol per address, in order of address.
fn one_each(mut symbols: Vec<Symbol>) -> Vec<Symbol> {
    let worth = |s: &Symbol| {
        let (is_weak, is_global) = (s.binding == Binding::Weak, s.binding == Binding::Global);
        preference(&s.name, s.size, is_weak, is_global)
    };
    symbols.sort_by(|a, b| (a.start, worth(a), &a.name).cmp(&(b.start, worth(b), &b.name)));
    symbols.dedup_by_key(|symbol| symbol.start);
    symbols
}

/// Gives symbols without a size one: up to the end of the unwind entry that begins there, else up to
/// the next symbol or the end of the section. Drops labels inside a function.
fn with_ends(symbols: Vec<Symbol>, guesses: &[Range<u64>], code: &[Range<u64>]) -> Vec<Symbol> {
    let mut ended: Vec<Symbol> = Vec::with_capacity(symbols.len());
    let mut reached = 0; // Largest end of a symbol with a size so far.
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

/// Cuts ranges, given in order of their starts, into disjoint pieces: of nested ranges, the one that
/// starts last owns an address.
fn flatten(ranges: impl Iterator<Item = (u64, u64)>, owner: impl Fn(usize) -> Owner) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut open: Vec<(u64, Owner)> = Vec::new(); // Ends of the ranges that contain `reached`.
    let mut reached = 0;
    for (index, (start, end)) in ranges.enumerate() {
        close(&mut open, &mut pieces, &mut reached, start);
        reached = reached.max(start);
        open.push((end, owner(index)));
    }
    close(&mut open, &mut pieces, &mut reached, u64::MAX);
    pieces
}

/// Emits the pieces of open ranges between `reached` and `to`.
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

/// `upper`, and the parts of `lower` that it leaves free; both in order and disjoint.
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
