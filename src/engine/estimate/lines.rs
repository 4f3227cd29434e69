//! The source lines of the document's functions: the parts of a line's time are those of the loops and blocks that
//! its samples are in.

use crate::hot::source::Sources;
use report::documents::estimate::{Bottleneck, Parts, Row, Share, ShareSource};
use report::documents::estimate_code::Instruction;
use report::documents::estimate_lines::SourceLine;
use std::collections::{BTreeMap, HashSet};
use tma::Address;

/// The instructions of a line by address, each with the loop or block that it is in.
type Code<'a> = BTreeMap<Address, (&'a Instruction, &'a Row)>;

/// The lines of a function with samples, in order of file and number. `pieces` are its loops and blocks with their
/// instructions, the smallest first: an instruction is of the first that has it.
pub(super) fn lines(pieces: &[&Row], sources: &mut Sources) -> Vec<SourceLine> {
    let mut by_line: BTreeMap<(&str, u32), Code> = BTreeMap::new();
    let mut seen: HashSet<Address> = HashSet::new();
    for piece in pieces {
        for one in &piece.code {
            let is_new = seen.insert(one.address);
            if let Some((file, line)) = one.source.as_ref().filter(|_| is_new) {
                let own = by_line.entry((file, *line)).or_default();
                own.insert(one.address, (one, piece));
            }
        }
    }
    let row = |((file, line), code): ((&str, u32), Code)| {
        let of = |(one, piece): &(&Instruction, &Row)| (one.share, piece.parts.clone());
        let weighted: Vec<(f64, Parts)> = code.values().map(of).collect();
        let share = weighted.iter().map(|(share, _)| share).sum();
        let mut named = code.values().filter(|(one, _)| one.samples > 0).map(|(_, p)| p.bottleneck);
        let first = named.next().unwrap_or_default();
        let is_one = named.all(|other| other == first);
        SourceLine {
            file: file.to_owned(),
            line,
            text: sources.line(file, line),
            share,
            bottleneck: if is_one { first } else { Bottleneck::default() },
            parts: mean(&weighted),
            code: code.values().map(|(one, _)| (*one).clone()).collect(),
        }
    };
    by_line.into_iter().map(row).filter(|line| line.share > 0.0).collect()
}

/// The mean of parts, by their weights.
fn mean(of: &[(f64, Parts)]) -> Parts {
    let all: f64 = of.iter().map(|(weight, _)| weight).sum();
    Parts::each(|part| {
        let sum = |value: fn(&Share) -> f64| {
            let sum: f64 = of.iter().map(|(weight, parts)| weight * value(parts.of(part))).sum();
            if all > 0.0 { sum / all } else { 0.0 }
        };
        let mut sources = of.iter().map(|(_, parts)| parts.of(part).source);
        let source = sources.next().unwrap_or_default();
        let is_one = sources.all(|other| other == source);
        let unknown = of.iter().map(|(_, parts)| parts.of(part)).find(|share| !share.has_value());
        let is_none = of.iter().all(|(_, parts)| parts.of(part).value <= 0.0);
        Share {
            value: sum(|share| share.value),
            low: sum(|share| share.low),
            high: sum(|share| share.high),
            source: match unknown {
                _ if is_one => source,
                Some(share) if is_none => share.source,
                _ => ShareSource::Several,
            },
            reason: None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use estimate::Part;

    fn piece(bottleneck: Part, memory: f64, code: &[(u64, u32, f64)]) -> Row {
        let one = |(address, line, share): &(u64, u32, f64)| Instruction {
            address: Address(*address),
            samples: (share * 100.0) as u64,
            share: *share,
            source: Some(("a.c".to_owned(), *line)),
            ..Instruction::default()
        };
        let memory_bound = Share { value: memory, ..Share::default() };
        Row {
            bottleneck: Bottleneck(Some(bottleneck)),
            parts: Parts { memory_bound, ..Parts::default() },
            code: code.iter().map(one).collect(),
            ..Row::default()
        }
    }

    /// By hand: line 1 has 0.3 of memory 0.8 and 0.1 of memory 0.4, so (0.24 + 0.04) / 0.4 = 0.7. The outer loop's
    /// copy of the inner instruction does not count twice.
    #[test]
    fn a_line_has_the_weighted_parts_of_its_pieces() {
        let inner = piece(Part::MemoryBound, 0.8, &[(0x10, 1, 0.3)]);
        let outer = piece(Part::CoreBound, 0.4, &[(0x8, 1, 0.1), (0x10, 1, 0.3), (0x18, 2, 0.2)]);
        let found = lines(&[&inner, &outer], &mut Sources::new(&[], "none"));
        assert_eq!(found.len(), 2);
        assert!((found[0].share - 0.4).abs() < 1e-12, "{:?}", found[0]);
        assert!((found[0].parts.memory_bound.value - 0.7).abs() < 1e-12, "{:?}", found[0]);
        assert_eq!((found[0].bottleneck, found[0].code.len()), (Bottleneck(None), 2));
        let core = Bottleneck(Some(Part::CoreBound));
        assert_eq!((found[1].bottleneck, found[1].text.clone()), (core, None));
    }
}
