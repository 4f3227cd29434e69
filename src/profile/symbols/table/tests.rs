//! Symbol tables made by hand and at random.

use super::*;
use proptest::prelude::*;

fn symbol(start: u64, size: u64, name: &str) -> Symbol {
    Symbol { start, size, binding: Binding::Global, label: false, name: name.into() }
}

fn text(start: u64, end: u64) -> Vec<Range<u64>> {
    std::iter::once(start..end).collect()
}

fn name(table: &mut Table, address: u64) -> String {
    table.function(address).map(|f| f.name.clone()).unwrap_or_default()
}

#[test]
fn of_aliases_the_one_that_perf_prefers_is_shown() {
    // The order of perf's choose_best_symbol, checked against the output of perf 6.1.
    let local = |name| Symbol { binding: Binding::Local, ..symbol(0x10, 8, name) };
    let weak = |name| Symbol { binding: Binding::Weak, ..symbol(0x10, 8, name) };
    for (aliases, best) in [
        (vec![symbol(0x10, 0, "sizeless"), weak("weak")], "weak"),
        (vec![weak("write"), symbol(0x10, 8, "__write")], "__write"),
        (vec![local("local_one"), symbol(0x10, 8, "global")], "global"),
        (vec![weak("weaker"), local("local")], "local"),
        (vec![symbol(0x10, 8, "__read_nocancel"), symbol(0x10, 8, "read")], "read"),
        (vec![symbol(0x10, 8, "abc"), symbol(0x10, 8, "abcd")], "abcd"),
    ] {
        let mut table = Table::new(aliases, Vec::new(), text(0, 0x100));
        assert_eq!(name(&mut table, 0x13), best);
    }
}

#[test]
fn versions_are_no_part_of_a_name() {
    let symbols = vec![symbol(0x10, 8, "cfree@GLIBC_2.2.5"), symbol(0x20, 8, "_Z3addii@@V_1")];
    let mut table = Table::new(symbols, Vec::new(), text(0, 0x100));
    assert_eq!(name(&mut table, 0x10), "cfree");
    assert_eq!(name(&mut table, 0x20), "add(int, int)");
    assert_eq!(table.function(0x10).unwrap().linkage.as_deref(), Some("cfree@GLIBC_2.2.5"));
}

#[test]
fn symbols_without_a_size_end_where_the_next_begins() {
    let symbols =
        vec![symbol(0x10, 0, "first"), symbol(0x30, 0x10, "second"), symbol(0x80, 0, "last")];
    let guesses = std::iter::once(0x80..0x90).collect();
    let mut table = Table::new(symbols, guesses, text(0, 0x100)).of_file("a.out");
    assert_eq!(table.function(0x2f).map(|f| (f.start, f.end)), Some((0x10, 0x30)));
    assert_eq!(name(&mut table, 0x8f), "last");
    assert_eq!(name(&mut table, 0x90), "a.out+0x90");
    assert_eq!(name(&mut table, 0x40), "a.out+0x40");
    assert_eq!(name(&mut table, 0x5), "a.out+0x0");
    assert!(table.function(0x100).is_none());
}

#[test]
fn code_without_symbols_has_the_functions_of_its_unwind_table() {
    let guesses = vec![0x120..0x140, 0x140..0x150];
    let mut table = Table::new(Vec::new(), guesses, text(0x100, 0x200)).of_file("a.out");
    let function = table.function(0x13f).cloned().unwrap();
    assert_eq!(
        (function.name.as_str(), function.start, function.end),
        ("a.out+0x120", 0x120, 0x140)
    );
    assert!(!function.named && function.linkage.is_none());
    assert_eq!(name(&mut table, 0x140), "a.out+0x140");
}

#[test]
fn a_function_inside_another_has_its_own_code_and_labels_none() {
    let label = Symbol { label: true, ..symbol(0x18, 0, "label") };
    let symbols = vec![symbol(0x10, 0x40, "outer"), symbol(0x20, 0x10, "inner"), label];
    let mut table = Table::new(symbols, Vec::new(), text(0, 0x100));
    assert_eq!(name(&mut table, 0x19), "outer");
    assert_eq!(name(&mut table, 0x25), "inner");
    let outer = table.function(0x35).unwrap();
    assert_eq!((outer.name.as_str(), outer.start, outer.end), ("outer", 0x10, 0x50));
}

proptest! {
    #[test]
    fn pieces_never_overlap_whatever_the_file_says(
        symbols in prop::collection::vec((0u64..60, 0u64..20, any::<bool>()), 0..12),
        guesses in prop::collection::vec((0u64..60, 0u64..80), 0..6),
        code in prop::collection::vec((0u64..60, 0u64..80), 0..3),
    ) {
        let symbols: Vec<Symbol> = symbols
            .into_iter()
            .map(|(start, size, label)| Symbol { label, ..symbol(start, size, "f") })
            .collect();
        let guesses = guesses.into_iter().map(|(start, end)| start..end).collect();
        let code: Vec<Range<u64>> =
            code.into_iter().map(|(start, end)| start..end).collect();
        let mut table = Table::new(symbols.clone(), guesses, code.clone());
        for pair in table.pieces.windows(2) {
            prop_assert!(pair[0].end <= pair[1].start);
        }
        for address in 0..100 {
            let sized = symbols.iter().any(|s| s.start <= address && address < s.start + s.size);
            let in_code = code.iter().any(|c| c.start <= address && address < c.end);
            let function = table.function(address).cloned();
            prop_assert!(function.is_some() || !(sized && in_code), "{address}");
            prop_assert!(function.is_some() || !in_code, "{address}");
            if let Some(function) = function {
                prop_assert!(function.start <= address && address < function.end);
            }
        }
    }
}
