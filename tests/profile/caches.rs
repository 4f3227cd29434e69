//! Files found by build-id in the caches of perf and of debuginfod's clients.

use super::binutils::{C, at, functions, instructions, module};
use crate::support::files::{Folder, text};
use crate::support::run::{program, run};
use crate::support::tools::{available, build, tool};
use profile::files::{Cache, Gap, SearchPaths};
use profile::module::{Module, ModuleKind};
use profile::symbols::Symbols;
use std::fs;
use std::path::Path;

pub const ID: &str = "0123456789abcdef0123456789abcdef01234567";

/// The program with this build-id, and its module as recorded.
pub fn recorded(folder: &Folder) -> Option<(std::path::PathBuf, Module, u64)> {
    let args = ["-O2", "-g", &format!("-Wl,--build-id=0x{ID}")];
    let program = build(folder.path(), "gcc", C, &args, "whole")?;
    let helper = *instructions(&program, "helper")?.first()?;
    let bytes = (0..ID.len()).step_by(2).map(|at| u8::from_str_radix(&ID[at..at + 2], 16).unwrap());
    let module = Module { build_id: Some(bytes.collect()), ..module(&program) };
    Some((program, module, helper))
}

/// The name of the function at an address, and whether its lines are known.
pub fn found(search: SearchPaths, module: &Module, address: u64) -> Result<(String, bool), Gap> {
    let mut symbols = Symbols::new(search);
    match symbols.function(module, at(address)) {
        Some(function) => Ok((function.name, !symbols.lines(module, at(address)).is_empty())),
        None => Err(symbols.gap(module).unwrap()),
    }
}

fn caches(cache: Cache, folder: &Folder) -> SearchPaths {
    let debug = vec![folder.path().join("none")];
    SearchPaths { caches: vec![cache], debug, ..SearchPaths::default() }
}

#[test]
fn programs_are_found_in_the_cache_of_perf() {
    if !available("perf") {
        return;
    }
    let folder = Folder::new();
    let Some((program_path, module, helper)) = recorded(&folder) else { return };
    // Where perf keeps it is perf's own affair: `.debug` in the home folder.
    let home = folder.path().join("home");
    fs::create_dir(&home).unwrap();
    let mut perf = program("perf");
    perf.env("HOME", &home).args(["buildid-cache", "--add", text(&program_path)]);
    run(&mut perf).succeeded();
    fs::remove_file(&program_path).unwrap();

    let whole = ("helper".to_owned(), true);
    let cache = home.join(".debug");
    let by_cache = caches(Cache::Perf(cache.clone()), &folder);
    assert_eq!(found(by_cache.clone(), &module, helper), Ok(whole.clone()));
    // `perf archive` is unpacked anywhere.
    let root = |path: &Path| SearchPaths { roots: vec![path.into()], ..SearchPaths::default() };
    assert_eq!(found(root(&cache), &module, helper), Ok(whole.clone()));
    assert_eq!(found(root(&home), &module, helper), Ok(whole));
    let gone = Gap::NoFile(module.path.clone());
    assert_eq!(found(SearchPaths::default(), &module, helper), Err(gone.clone()));
    // A file that is another one by its build-id.
    let other = Module { build_id: Some(vec![0x76; 20]), ..module };
    assert_eq!(found(by_cache, &other, helper), Err(gone));
}

/// `perf archive` has the symbols of the kernel that ran, which may have been elsewhere in memory.
#[test]
fn the_kernel_of_a_recording_is_found_in_the_cache_of_perf() {
    let folder = Folder::new();
    let place = format!(".build-id/{}/{}/kallsyms", &ID[..2], &ID[2..]);
    let symbols =
        "ffffffff81000000 T _text\nffffffff81000100 T do_work\nffffffff81000200 t after\n";
    folder.write(&place, symbols);
    let bytes = (0..ID.len()).step_by(2).map(|at| u8::from_str_radix(&ID[at..at + 2], 16).unwrap());
    let kernel = Module {
        path: "[kernel.kallsyms]".into(),
        kind: ModuleKind::Kernel,
        build_id: Some(bytes.collect()),
        reference: Some(("_text".into(), 0xffff_ffff_9100_0000)),
        ..Module::default()
    };
    let mut symbols = Symbols::new(caches(Cache::Perf(folder.path().into()), &folder));
    let found = symbols.function(&kernel, at(0xffff_ffff_9100_0110)).unwrap();
    assert_eq!((found.name.as_str(), found.start), ("do_work", 0xffff_ffff_9100_0100));
    let other = Module { build_id: Some(vec![7; 20]), ..kernel };
    assert_eq!(symbols.function(&other, at(0xffff_ffff_9100_0110)), None);
}

#[test]
fn programs_and_debug_files_are_found_in_the_cache_of_debuginfod() {
    let folder = Folder::new();
    let Some((program, module, helper)) = recorded(&folder) else { return };
    let place = folder.path().join("cache").join(ID);
    fs::create_dir_all(&place).unwrap();
    let debug = place.join("debuginfo");
    let Some(_) = tool("objcopy", &["--only-keep-debug", text(&program), text(&debug)]) else {
        return;
    };
    tool("strip", &["-o", text(&place.join("executable")), text(&program)]);
    fs::remove_file(&program).unwrap();
    let search = caches(Cache::Debuginfod(folder.path().join("cache")), &folder);
    assert_eq!(found(search.clone(), &module, helper), Ok(("helper".into(), true)));
    // What clients leave for a file that no server has.
    fs::write(&debug, "").unwrap();
    let (name, has_lines) = found(search.clone(), &module, helper).unwrap();
    assert!(name != "helper" && !has_lines, "{name}");
    fs::write(place.join("executable"), "").unwrap();
    assert!(found(search, &module, helper).is_err());
}

/// dwz moves what several debug files have in common to a file of its own (`.gnu_debugaltlink`).
#[test]
fn parts_that_dwz_moved_to_a_shared_file_are_read() {
    if !available("dwz") {
        return;
    }
    let folder = Folder::new();
    let args = ["-O2", "-g", "-gdwarf-4"];
    let paths = ["one", "two"].map(|name| build(folder.path(), "gcc", C, &args, name));
    let [Some(one), Some(two)] = paths else { return };
    let expected: Vec<_> = {
        let addresses = instructions(&one, "helper").unwrap();
        let own = super::binutils::addr2line(&one, &addresses);
        let Some(own) = own else { return };
        addresses.into_iter().zip(own).collect()
    };
    let shared = folder.path().join("shared.debug");
    tool("dwz", &["-m", text(&shared), text(&one), text(&two)]);
    need!(shared.exists(), "this dwz shares nothing of such small files");
    let (addresses, expected): (Vec<_>, Vec<_>) = expected.into_iter().unzip();
    assert!(functions(&one).is_some());
    let nowhere = SearchPaths { debug: vec![folder.path().join("none")], ..SearchPaths::default() };
    for program in [&one, &two] {
        let mut symbols = Symbols::new(nowhere.clone());
        super::symbols::check_lines(&mut symbols, &module(program), &addresses, &expected);
    }
    let names = |symbols: &mut Symbols| -> Vec<String> {
        let lines = addresses.iter().flat_map(|a| symbols.lines(&module(&one), at(*a)));
        lines.filter_map(|line| line.inlined).collect()
    };
    let whole = names(&mut Symbols::new(nowhere.clone()));
    assert!(whole.contains(&"square".to_owned()), "{whole:?}");
    // Another shared file than the one that is meant, and none: fewer names, no error.
    let bytes = fs::read(&shared).unwrap();
    for at_byte in (0..bytes.len()).step_by(bytes.len() / 40 + 1) {
        let mut damaged = bytes.clone();
        damaged[at_byte] ^= 0x55;
        fs::write(&shared, damaged).unwrap();
        let _ = names(&mut Symbols::new(nowhere.clone()));
    }
    fs::remove_file(&shared).unwrap();
    let _ = names(&mut Symbols::new(nowhere));
}
