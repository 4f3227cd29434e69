//! Functions and source lines of programs, against what binutils say of the same files.

use super::binutils::{C, CPP, RUST, addr2line, at, functions, hex, instructions, module};
use crate::support::files::{Folder, text};
use crate::support::quiet::busy;
use crate::support::tools::{build, tool};
use isa::flow::Memory as _;
use profile::files::Gap;
use profile::module::Module;
use profile::symbols::{Line, Symbols};
use std::fs;
use std::path::{Path, PathBuf};

/// The program in all its forms.
fn programs(folder: &Path) -> Vec<PathBuf> {
    [
        ("gcc", C, vec!["-O1", "-no-pie", "-g"], "c-fixed"),
        ("gcc", C, vec!["-O1", "-pie", "-fPIE", "-g"], "c-pie"),
        ("gcc", C, vec!["-O1", "-static", "-g"], "c-static"),
        ("g++", CPP, vec!["-O1", "-g"], "cpp"),
        ("rustc", RUST, vec!["-O", "-g"], "rust"),
        ("rustc", RUST, vec!["-O", "-Csymbol-mangling-version=v0"], "rust-v0"),
    ]
    .into_iter()
    .filter_map(|(compiler, source, args, output)| build(folder, compiler, source, &args, output))
    .collect()
}

#[test]
fn functions_are_those_of_nm() {
    let _busy = busy();
    let folder = Folder::new();
    for program in programs(folder.path()) {
        let Some(known) = functions(&program) else { return };
        let (mut symbols, module) = (Symbols::default(), module(&program));
        let mut seen = 0;
        for (&start, function) in known.iter().filter(|(_, function)| function.size > 0) {
            for address in [start, start + function.size - 1] {
                let found = symbols.function(&module, at(address)).unwrap();
                // Assemblers nest functions; the inner one has the address.
                if found.start != start {
                    assert!(found.start > start && found.end >= address, "{found:?} {function:?}");
                    continue;
                }
                let linkage = found.linkage.clone().unwrap();
                let aliases = &function.names;
                assert!(aliases.iter().any(|(l, _)| *l == linkage), "{found:?} {aliases:?}");
                let same = |name: &str| spelled_alike(name, &found.name);
                assert!(aliases.iter().any(|(_, name)| same(name)), "{found:?} {aliases:?}");
                assert!(found.named);
                seen += 1;
            }
        }
        // main, helper, add, sub and _start at least, each at both ends.
        assert!(seen >= 10, "{} functions of {}", seen, program.display());
        assert_eq!(symbols.gap(&module), None);
    }
}

/// binutils and the demanglers used here differ in blanks.
fn spelled_alike(left: &str, right: &str) -> bool {
    let plain = |name: &str| name.replace(' ', "");
    let (left, right) = (plain(left), plain(right));
    // Parameters of template constructors are left out.
    left == right || (right.ends_with('>') && left.starts_with(&format!("{right}(")))
}

#[test]
fn stubs_of_the_plt_are_those_of_objdump() {
    let folder = Folder::new();
    for args in
        [["-O1", "-no-pie", "-fcf-protection=none"], ["-O1", "-pie", "-fcf-protection=full"]]
    {
        let args = [&args[..], &["-Wl,-z,lazy", "-Wl,-z,ibtplt"]].concat();
        let Some(program) = build(folder.path(), "gcc", C, &args, "a") else { return };
        let Some(listing) = tool("objdump", &["-d", text(&program)]) else { return };
        let (mut symbols, module) = (Symbols::default(), module(&program));
        let stubs: Vec<(u64, &str)> = listing
            .lines()
            .filter_map(|line| line.strip_suffix(">:")?.split_once(" <"))
            .filter(|(_, name)| name.ends_with("@plt"))
            .map(|(address, name)| (hex(address), name))
            .collect();
        assert!(stubs.iter().any(|(_, name)| *name == "printf@plt"), "{listing}");
        for (address, name) in stubs {
            assert_eq!(symbols.function(&module, at(address)).unwrap().name, name);
        }
    }
}

#[test]
fn lines_and_inlined_functions_are_those_of_addr2line() {
    let _busy = busy();
    let folder = Folder::new();
    let versions =
        [["-gdwarf-4", "-gz=none"], ["-gdwarf-5", "-gz=none"], ["-gdwarf-5", "-gz=zlib"]];
    for version in versions {
        let args = [&version[..], &["-O2"]].concat();
        let Some(program) = build(folder.path(), "gcc", C, &args, "a") else { return };
        let Some(addresses) = instructions(&program, "helper") else { return };
        let Some(expected) = addr2line(&program, &addresses) else { return };
        assert!(expected.iter().any(|frames| frames.len() == 3), "{version:?} {expected:?}");
        check_lines(&mut Symbols::default(), &module(&program), &addresses, &expected);
    }
    for (compiler, source, function) in
        [("g++", CPP, "main"), ("rustc", RUST, "main"), ("rustc", RUST, "count")]
    {
        let Some(program) = build(folder.path(), compiler, source, &["-O", "-g"], "b") else {
            continue;
        };
        let Some(known) = functions(&program) else { return };
        let wanted = |name: &str| name == function || name.ends_with(&format!("::{function}"));
        let (start, size) = known
            .iter()
            .find(|(_, known)| known.names.iter().any(|(_, name)| wanted(name)))
            .map(|(start, known)| (*start, known.size))
            .unwrap();
        let addresses: Vec<u64> = (start..start + size).collect();
        let Some(expected) = addr2line(&program, &addresses) else { return };
        check_lines(&mut Symbols::default(), &module(&program), &addresses, &expected);
    }
}

/// Compares frames at `addresses`; binutils say `?` for what is unknown.
pub fn check_lines(
    symbols: &mut Symbols,
    module: &Module,
    addresses: &[u64],
    expected: &[Vec<(String, String)>],
) {
    let mut exact = 0;
    for (&address, frames) in addresses.iter().zip(expected) {
        let lines = symbols.lines(module, at(address));
        let place = |line: &Line| {
            let file = line.file.as_deref().unwrap_or("??").rsplit('/').next().unwrap().to_owned();
            format!("{file}:{}", line.line.map_or("?".into(), |line| line.to_string()))
        };
        let ours: Vec<String> = lines.iter().map(place).collect();
        let theirs: Vec<&str> =
            frames.iter().map(|(_, place)| place.rsplit('/').next().unwrap()).collect();
        assert_eq!(ours, theirs, "{address:#x} of {}", module.path);
        let (outermost, inlined) = lines.split_last().unwrap();
        assert_eq!(outermost.inlined, None);
        for (line, (function, _)) in inlined.iter().zip(frames) {
            // addr2line prints DW_AT_name where there is no linkage name; that is the last part.
            let name = line.inlined.as_deref().unwrap();
            let same = spelled_alike(function, name) || name.contains(function.as_str());
            assert!(same || function.contains("::h"), "{address:#x}: {name} and {function}");
        }
        exact += 1;
    }
    assert!(exact > 0);
}

#[test]
fn a_stripped_program_has_the_functions_of_its_unwind_table() {
    let folder = Folder::new();
    let Some(program) = build(folder.path(), "gcc", C, &["-O1"], "a") else { return };
    let Some(known) = functions(&program) else { return };
    let stripped = folder.path().join("stripped");
    let Some(_) = tool("strip", &["-o", text(&stripped), text(&program)]) else { return };
    let (mut symbols, module) = (Symbols::default(), module(&stripped));
    let mut seen = 0;
    for name in ["main", "add", "sub", "helper"] {
        let (&start, function) =
            known.iter().find(|(_, f)| f.names.iter().any(|(l, _)| l == name)).unwrap();
        let found = symbols.function(&module, at(start + 1)).unwrap();
        assert_eq!((found.start, found.end), (start, start + function.size), "{name}");
        assert!(!found.named && found.linkage.is_none());
        assert_eq!(found.name, format!("stripped+{start:#x}"));
        seen += 1;
    }
    assert_eq!(seen, 4);
    // What is imported still has a name.
    let without = functions(&program).unwrap();
    assert!(without.values().all(|f| f.names.iter().all(|(name, _)| name != "printf")));
}

#[test]
fn code_is_that_of_the_file_and_bounded() {
    let folder = Folder::new();
    let Some(program) = build(folder.path(), "gcc", C, &["-O1"], "a") else { return };
    let raw = folder.path().join("text");
    let copy = ["-O", "binary", "--only-section=.text", text(&program), text(&raw)];
    let Some(_) = tool("objcopy", &copy) else { return };
    let sections = tool("objdump", &["-h", text(&program)]).unwrap();
    let start = sections
        .lines()
        .find_map(|line| line.split_whitespace().skip_while(|w| *w != ".text").nth(2))
        .map(hex)
        .unwrap();
    let expected = fs::read(raw).unwrap();
    let end = start + expected.len() as u64;
    let (mut symbols, module) = (Symbols::default(), module(&program));
    assert_eq!(symbols.code(&module, start, end).unwrap(), expected);
    for (start, end) in [(start, u64::MAX), (0, end), (end, start), (u64::MAX, u64::MAX), (0, 4)] {
        assert_eq!(symbols.code(&module, start, end), Err(Gap::NoCode), "{start:#x} {end:#x}");
    }
}

#[test]
fn tables_of_a_pie_hold_the_addresses_of_its_functions() {
    let folder = Folder::new();
    for packing in ["-Wl,-z,nopack-relative-relocs", "-Wl,-z,pack-relative-relocs"] {
        let args = ["-O1", "-pie", "-fPIE", packing];
        let Some(program) = build(folder.path(), "gcc", C, &args, "a") else { return };
        let names = tool("nm", &[text(&program)]).unwrap();
        let address = |name: &str| {
            let line = names.lines().find(|line| line.split(' ').nth(2) == Some(name)).unwrap();
            hex(line.split(' ').next().unwrap())
        };
        let image = Symbols::default().image(&module(&program)).unwrap();
        let table = image.read(address("table"), 24).unwrap();
        let words: Vec<u64> =
            table.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
        assert_eq!(words, [address("add"), address("sub"), address("add")], "{packing}");
    }
}
