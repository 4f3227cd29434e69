//! Functions of just-in-time compilers: of jitdumps, and of perf map files, which have one `START SIZE NAME` per
//! line, hexadecimal (tools/perf/Documentation/jit-interface.txt).

use super::table::{Binding, Symbol, Table};
use crate::jitdump;
use crate::ranges::RangeMap;

/// The functions in `text`. JITs reuse memory: for an address, the last line holds. Malformed lines
/// are skipped.
pub(super) fn parse(text: &[u8]) -> Table {
    let text = String::from_utf8_lossy(text);
    let mut ranges = RangeMap::default();
    for line in text.lines() {
        if let Some((start, end, name)) = parse_line(line) {
            ranges.insert(start, end, name);
        }
    }
    let symbols = ranges.iter().map(|(start, end, name)| Symbol {
        start,
        size: end - start,
        binding: Binding::Global,
        label: false,
        name: (*name).into(),
    });
    Table::new(symbols.collect(), Vec::new(), Vec::new()).verbatim()
}

/// The functions of a jitdump.
pub(super) fn table(functions: Vec<jitdump::Function>) -> Table {
    let symbols = functions.into_iter().filter(|function| !function.name.is_empty());
    let symbols = symbols.map(|function| Symbol {
        start: function.start,
        size: function.size,
        binding: Binding::Global,
        label: false,
        name: function.name,
    });
    Table::new(symbols.collect(), Vec::new(), Vec::new()).verbatim()
}

fn parse_line(line: &str) -> Option<(u64, u64, &str)> {
    let (start, rest) = line.trim().split_once([' ', '\t'])?;
    let (size, name) = rest.trim_start().split_once([' ', '\t'])?;
    let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let (start, name) = (number(start)?, name.trim());
    let end = start.checked_add(number(size)?)?;
    (!name.is_empty()).then_some((start, end, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn later_lines_override_earlier_ones_and_names_have_blanks() {
        let text = b"1000 100 LazyCompile:~add /tmp/a.js:1\n0x1040 10 Stub\nnonsense\n\
            5000 10 _Z3addii@js\n2000 zz bad\n3000 10\n1080 20 \xff\nffffffffffffffff 10 wraps\n";
        let mut table = parse(text);
        let mut name = |address| table.function(address).map(|f| (f.name.clone(), f.start, f.end));
        let whole = "LazyCompile:~add /tmp/a.js:1".to_owned();
        assert_eq!(name(0x1000), Some((whole.clone(), 0x1000, 0x1040)));
        assert_eq!(name(0x1045), Some(("Stub".into(), 0x1040, 0x1050)));
        assert_eq!(name(0x1070), Some((whole, 0x1050, 0x1080)));
        assert_eq!(name(0x1081), Some(("\u{fffd}".into(), 0x1080, 0x10a0)));
        assert_eq!(name(0x5000), Some(("_Z3addii@js".into(), 0x5000, 0x5010)));
        assert_eq!(name(0x3000), None);
    }

    proptest! {
        #[test]
        fn nothing_breaks_it(text in prop::collection::vec(any::<u8>(), 0..300)) {
            parse(&text);
        }

        #[test]
        fn no_numbers_break_it(lines in prop::collection::vec("[0-9a-f]{1,16} [0-9a-f]{1,16} f", 0..20)) {
            parse(lines.join("\n").as_bytes());
        }
    }
}
