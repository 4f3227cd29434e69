//! Functions, lines and code of programs, against what binutils say of the same files.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

#[path = "profile_symbols/tools.rs"]
mod tools;

use isa::flow::Memory as _;
use profile::module::{Kind, Module};
use profile::record::{Mapping, Record};
use profile::space::Spaces;
use profile::symbols::{Gap, Origin, Search, Symbols};
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use tools::{C, CPP, RUST, addr2line, at, build, functions, hex, instructions, module, text, tool};

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
    let folder = tempfile::tempdir().unwrap();
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
    let folder = tempfile::tempdir().unwrap();
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
    let folder = tempfile::tempdir().unwrap();
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
fn check_lines(
    symbols: &mut Symbols,
    module: &Module,
    addresses: &[u64],
    expected: &[Vec<(String, String)>],
) {
    let mut exact = 0;
    for (&address, frames) in addresses.iter().zip(expected) {
        let lines = symbols.lines(module, at(address));
        let place = |line: &profile::symbols::Line| {
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
    let folder = tempfile::tempdir().unwrap();
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
        assert!(found.name.starts_with(".text+0x"), "{}", found.name);
        seen += 1;
    }
    assert_eq!(seen, 4);
    // What is imported still has a name.
    let without = functions(&program).unwrap();
    assert!(without.values().all(|f| f.names.iter().all(|(name, _)| name != "printf")));
}

/// A program without debug information, its debug file elsewhere: by link or by build-id.
#[test]
fn separate_debug_files_are_found_by_link_and_by_build_id() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let args = ["-O2", "-g", "-Wl,--build-id=0x0123456789abcdef"];
    let Some(program) = build(folder.path(), "gcc", C, &args, "whole") else { return };
    let Some(addresses) = instructions(&program, "helper") else { return };
    let Some(expected) = addr2line(&program, &addresses) else { return };
    let debug = place("a.debug");
    let keep = ["--only-keep-debug", "--compress-debug-sections", text(&program), text(&debug)];
    let Some(_) = tool("objcopy", &keep) else { return };
    let bare = place("bare");
    tool("strip", &["-o", text(&bare), text(&program)]);
    let linked = place("linked");
    let link = format!("--add-gnu-debuglink={}", text(&debug));
    tool("objcopy", &[&link, text(&bare), text(&linked)]);
    let check = |symbols: &mut Symbols, program: &Path| {
        let helper = symbols.function(&module(program), at(addresses[0])).unwrap();
        assert_eq!(helper.name, "helper");
        check_lines(symbols, &module(program), &addresses, &expected);
    };
    let nowhere = Search { debug: vec![place("none")], ..Search::default() };
    check(&mut Symbols::new(nowhere.clone()), &linked);

    let named = |symbols: &mut Symbols, program: &Path| {
        symbols.function(&module(program), at(addresses[0])).unwrap().named
    };
    assert!(!named(&mut Symbols::new(nowhere.clone()), &bare), "nothing leads to the debug file");

    let by_id = place("debug/.build-id/01");
    fs::create_dir_all(&by_id).unwrap();
    fs::copy(&debug, by_id.join("23456789abcdef.debug")).unwrap();
    let search = Search { debug: vec![place("debug")], ..Search::default() };
    check(&mut Symbols::new(search), &bare);

    // Another file under the link's name: its checksum tells.
    let mut changed = fs::read(&debug).unwrap();
    changed.push(0);
    fs::write(&debug, changed).unwrap();
    assert!(!named(&mut Symbols::new(nowhere), &linked));
}

#[test]
fn a_changed_or_missing_file_gives_no_names() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["-O1", "-Wl,--build-id=0xaabbccdd"];
    let Some(program) = build(folder.path(), "gcc", C, &args, "a") else { return };
    let start = *functions(&program).unwrap().keys().next().unwrap();
    let with = |id: Option<Vec<u8>>, path: &str| Module {
        build_id: id,
        path: path.into(),
        ..module(&program)
    };
    let path = text(&program);
    let mut symbols = Symbols::default();
    let mut check = |module: &Module, gap: Option<Gap>| {
        assert_eq!(symbols.gap(module), gap);
        assert_eq!(symbols.function(module, at(start)).is_some(), gap.is_none());
        assert_eq!(symbols.code(module, start, start + 1).err(), gap);
        assert_eq!(symbols.lines(module, at(start)), []);
    };
    // As perf pads build-ids.
    let mut padded = vec![0xaa, 0xbb, 0xcc, 0xdd];
    padded.resize(20, 0);
    check(&with(Some(padded), path), None);
    let other = with(Some(vec![1, 2, 3, 4]), path);
    check(&other, Some(Gap::Changed("01020304".into(), "aabbccdd".into())));
    let gone = with(None, "/no/such/program");
    check(&gone, Some(Gap::NoFile("/no/such/program".into())));
    let deleted = format!("{path} (deleted)");
    check(&with(Some(vec![0xaa, 0xbb, 0xcc, 0xdd]), &deleted), None);
    check(&with(None, &deleted), Some(Gap::Changed("none".into(), "aabbccdd".into())));
    for path in ["/dev/zero", "/", "/etc/passwd/x"] {
        check(&with(None, path), Some(Gap::NoFile(path.into())));
    }
    check(&with(None, "/etc/passwd"), Some(Gap::Unreadable("it is not an ELF file".into())));
}

#[test]
fn programs_are_found_below_the_roots_first() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["-O1", "-Wl,--build-id=0xaabbccdd"];
    let Some(program) = build(folder.path(), "gcc", C, &args, "a") else { return };
    let start = *functions(&program).unwrap().keys().next().unwrap();
    let search = Search { roots: vec![folder.path().into()], ..Search::default() };
    for path in ["/a", "/usr/lib/elsewhere/a"] {
        let elsewhere = Module { path: path.into(), ..module(&program) };
        assert!(Symbols::new(search.clone()).function(&elsewhere, at(start)).is_some());
        assert!(Symbols::default().function(&elsewhere, at(start)).is_none());
    }
}

#[test]
fn code_is_that_of_the_file_and_bounded() {
    let folder = tempfile::tempdir().unwrap();
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
    let folder = tempfile::tempdir().unwrap();
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

#[test]
fn functions_of_a_jit_come_from_its_map_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("tmp")).unwrap();
    fs::write(folder.path().join("tmp/perf-77.map"), "7f0000001000 80 run:loop\n").unwrap();
    let search = Search { roots: vec![folder.path().into()], ..Search::default() };
    let jit = |pid| Module {
        path: "//anon".into(),
        kind: Kind::Anonymous,
        pid: Some(pid),
        ..Module::default()
    };
    let mut symbols =
        Symbols::new(search).of(Origin { host: Some("?".into()), ..Origin::default() });
    assert_eq!(symbols.function(&jit(77), at(0x7f0000001010)).unwrap().name, "run:loop");
    assert_eq!(symbols.function(&jit(77), at(0x7f0000001080)), None);
    assert_eq!(symbols.gap(&jit(78)), Some(Gap::NoFile("/tmp/perf-78.map".into())));
}

#[test]
fn the_running_kernels_page_has_functions() {
    let vdso = Module { path: "[vdso]".into(), kind: Kind::Vdso, ..Module::default() };
    let live = Origin { live: true, ..Origin::default() };
    let mut symbols = Symbols::default().of(live.clone());
    if symbols.gap(&vdso).is_some() {
        eprintln!("skipped: no vdso here");
        return;
    }
    let names: Vec<String> = (0..0x4000)
        .filter_map(|address| symbols.function_at(&vdso, address).map(|f| f.name.clone()))
        .collect();
    // vdso(7): what every x86-64 kernel exports, under either name.
    if cfg!(target_arch = "x86_64") {
        assert!(names.iter().any(|name| name.ends_with("clock_gettime")));
    }
    let other = Module { build_id: Some(vec![1; 20]), ..vdso };
    assert!(matches!(Symbols::default().of(live).gap(&other), Some(Gap::Changed(..))));
}

/// notes/recordings.md: the executable segment has offset 0x740 and address 0x1740, so addresses
/// are not offsets; the main back edge is at 0x1a6e. The mapping is that of `perf script
/// --show-mmap-events`, the function of `nm`.
#[test]
fn file_offsets_are_mapped_to_addresses_by_the_program_headers() {
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/recordings/autofdo");
    let program = recordings.join("propeller_sample_1.bin");
    if !program.exists() {
        eprintln!("skipped: ../shared/recordings/autofdo is not here");
        return;
    }
    let mut build_id = hex("572ac72487ae1966").to_be_bytes().to_vec();
    build_id.resize(20, 0);
    let search = Search { roots: vec![recordings], ..Search::default() };
    let path = "/build/propeller_sample_1.bin".to_owned();
    let mut spaces = Spaces::new(search.clone(), &[(path.clone(), build_id)]);
    let mapping = Mapping {
        pid: 5595,
        tid: 5595,
        start: 0x5629ec742000,
        length: 0x1000,
        path,
        ..Mapping::default()
    };
    spaces.apply(&Record::Map { time: None, mapping: mapping.into() });
    let place = spaces.place(5595, 0x5629ec742a6e, Some(true)).unwrap();
    assert_eq!(place.address, 0x1a6e);
    let main = Symbols::new(search).function(&spaces.modules.all[place.module], place).unwrap();
    assert_eq!((main.name.as_str(), main.start), ("main", 0x1920));
}

#[test]
fn the_symbols_may_be_used_on_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<Symbols>();
    is_send::<Spaces>();
}

/// Everything that can be asked of a file, at a few hundred addresses.
fn use_all(data: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mutated");
    fs::write(&path, data).unwrap();
    let search = Search { debug: vec![folder.path().into()], ..Search::default() };
    let (mut symbols, module) = (Symbols::new(search), module(&path));
    let _ = symbols.gap(&module);
    for address in (0..0x4000).step_by(61).chain([u64::MAX, 1 << 63]) {
        let _ = symbols.function(&module, at(address));
        let _ = symbols.lines(&module, at(address));
        let _ = symbols.code(&module, address, address.saturating_add(16));
        if let Ok(image) = symbols.image(&module) {
            let _ = image.read(address, 24);
        }
    }
    let mut spaces = Spaces::new(Search::default(), &[]);
    let mapping =
        Mapping { pid: 1, length: u64::MAX, path: text(&path).into(), ..Mapping::default() };
    spaces.apply(&Record::Map { time: None, mapping: mapping.into() });
    let _ = spaces.place(1, 0x1200, Some(true));
}

#[test]
fn no_damage_to_a_file_breaks_anything() {
    let folder = tempfile::tempdir().unwrap();
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(80) };
    let all = [["-O1", "-g", "-gz=none"], ["-O1", "-g", "-gz=zlib"]];
    for args in all {
        let Some(program) = build(folder.path(), "gcc", C, &args, "a") else { return };
        let data = fs::read(program).unwrap();
        let size = data.len();
        // Headers at both ends are hit more often than chance would.
        let place = prop_oneof![0..size, 0..0x400usize, size - 0x900..size];
        let changes = prop::collection::vec((place, any::<u8>()), 0..40);
        proptest!(config.clone(), |(changes in changes, cut in 0..size * 3)| {
            let mut data = data.clone();
            for (at, byte) in changes {
                data[at] = byte;
            }
            data.truncate(cut);
            use_all(&data);
        });
    }
}
