//! Debug information in places of its own: split DWARF, symbols compressed inside of stripped programs, and parts
//! shared through an alternative file; against addr2line and nm.

use super::binutils::{C, addr2line, at, functions, instructions, module};
use super::symbols::check_lines;
use crate::support::files::{Folder, text};
use crate::support::run::tdtool;
use crate::support::tools::{build, copy, tool};
use profile::files::SearchPaths;
use profile::symbols::Symbols;
use std::fs;
use std::path::{Path, PathBuf};

/// Looks for debug files nowhere but where the program says.
fn symbols(folder: &Folder) -> Symbols {
    let nowhere = vec![folder.path().join("none")];
    Symbols::new(SearchPaths { debug: nowhere, ..SearchPaths::default() })
}

/// The functions inlined at each of `helper`'s instructions.
fn inlined(symbols: &mut Symbols, program: &Path, addresses: &[u64]) -> Vec<String> {
    let names = |address: &u64| {
        let lines = symbols.lines(&module(program), at(*address));
        lines.into_iter().filter_map(|line| line.inlined).collect::<Vec<_>>().join(";")
    };
    addresses.iter().map(names).collect()
}

#[test]
fn units_in_files_of_their_own_have_functions_and_lines() {
    for version in ["-gdwarf-5", "-gdwarf-4"] {
        let folder = Folder::new();
        let place = |name: &str| folder.path().join(name);
        // The unit is named after the output, in the folder that the compiler ran in.
        let args = ["-O2", version, "-gsplit-dwarf"];
        let Some(program) = build(folder.path(), "gcc", C, &args, "split") else { return };
        let Some(addresses) = instructions(&program, "helper") else { return };
        let dwo = dwo_in(folder.path());
        // addr2line of binutils does not read units elsewhere: it is asked of the same code with its own.
        let Some(whole) = build(folder.path(), "gcc", C, &["-O2", version], "whole") else {
            return;
        };
        assert_eq!(instructions(&whole, "helper").unwrap(), addresses);
        let Some(expected) = addr2line(&whole, &addresses) else { return };
        assert!(expected.iter().any(|frames| frames.len() > 2), "{expected:?}");
        check_lines(&mut symbols(&folder), &module(&program), &addresses, &expected);
        let known = inlined(&mut symbols(&folder), &program, &addresses);
        assert!(known.iter().any(|names| names == "square;twice"), "{version}: {known:?}");

        // The program is moved with its unit.
        let moved = place("moved");
        fs::create_dir(&moved).unwrap();
        copy(text(&program), &moved.join("split"));
        fs::rename(&dwo, moved.join(dwo.file_name().unwrap())).unwrap();
        let program = moved.join("split");
        assert_eq!(
            inlined(&mut symbols(&folder), &program, &addresses),
            known,
            "{version}: beside"
        );

        // A unit of the same name that is another one.
        let dwo = moved.join(dwo.file_name().unwrap());
        let other = folder.path().join("other");
        fs::create_dir(&other).unwrap();
        let changed = C.replace("* 3", "* 5 + 1");
        let Some(_) = build(&other, "gcc", &changed, &args, "split") else { return };
        let own = fs::read(&dwo).unwrap();
        fs::copy(dwo_in(&other), &dwo).unwrap();
        let foreign = inlined(&mut symbols(&folder), &program, &addresses);
        assert!(foreign.iter().all(String::is_empty), "{version}: {foreign:?}");

        // All units in one file.
        fs::write(&dwo, own).unwrap();
        // GNU dwp, to binutils 2.40 at least, leaves units of version 5 out; llvm-dwp 14 does not end.
        let package = moved.join("split.dwp");
        let packs = version == "-gdwarf-4";
        if packs && tool("dwp", &["-o", text(&package), text(&dwo)]).is_some() {
            let kept = fs::read(&dwo).unwrap();
            fs::remove_file(&dwo).unwrap();
            assert_eq!(inlined(&mut symbols(&folder), &program, &addresses), known, "{version}");
            fs::write(&dwo, kept).unwrap();
            fs::remove_file(package).unwrap();
        }

        // Damage ends in fewer names, not in an error.
        let whole = fs::read(&dwo).unwrap();
        for at in (0..whole.len()).step_by(whole.len() / 60) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x55;
            damaged.truncate(whole.len() - at / 7);
            fs::write(&dwo, damaged).unwrap();
            inlined(&mut symbols(&folder), &program, &addresses);
        }
    }
}

/// The `.dwo` file in a folder.
fn dwo_in(folder: &Path) -> PathBuf {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let is_dwo = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "dwo");
    files.into_iter().find(is_dwo).expect("a .dwo file")
}

/// As distributions do it (GDB, MiniDebugInfo): the dynamic symbols stay where they are.
#[test]
fn stripped_programs_have_the_symbols_that_are_compressed_inside() {
    let folder = Folder::new();
    let place = |name: &str| folder.path().join(name);
    let args = ["-O2", "-g", "-rdynamic"];
    let Some(program) = build(folder.path(), "gcc", C, &args, "whole") else { return };
    let known = functions(&program).unwrap();
    let (mini, bare) = (place("mini"), place("bare"));
    let Some(_) = tool(
        "objcopy",
        &["-S", "--keep-symbol=helper", "--only-keep-debug", text(&program), text(&mini)],
    ) else {
        return;
    };
    let Some(_) = tool("strip", &["-o", text(&bare), text(&program)]) else { return };
    let Some(_) = tool("xz", &["-k", text(&mini)]) else { return };
    let section = format!(".gnu_debugdata={}", text(&place("mini.xz")));
    let Some(_) = tool("objcopy", &["--add-section", &section, text(&bare)]) else { return };
    for (start, function) in &known {
        let names: Vec<&str> = function.names.iter().map(|(name, _)| name.as_str()).collect();
        if ["helper", "add", "main"].iter().any(|name| names.contains(name)) {
            let found = symbols(&folder).function(&module(&bare), at(*start)).unwrap();
            assert!(names.contains(&found.name.as_str()), "{found:?} is {names:?}");
        }
    }

    // Blocks are named as in reports.
    let listed = tdtool(["block", "--list", &format!("{}:helper", text(&bare))]).succeeded();
    assert!(listed.stdout.contains("helper"), "{}", listed.stdout);

    // What claims to be compressed symbols and is not.
    let packed = fs::read(place("mini.xz")).unwrap();
    let helper = known.iter().find(|(_, known)| known.names.iter().any(|n| n.0 == "helper"));
    let helper = *helper.unwrap().0;
    let mut named = 0;
    for at_byte in (0..packed.len()).step_by(packed.len() / 40) {
        let mut damaged = packed.clone();
        damaged[at_byte] ^= 0x55;
        fs::write(place("damaged.xz"), &damaged).unwrap();
        let section = format!(".gnu_debugdata={}", text(&place("damaged.xz")));
        tool("objcopy", &["--update-section", &section, text(&bare)]);
        let found = symbols(&folder).function(&module(&bare), at(helper));
        named += usize::from(found.is_some_and(|function| function.named));
    }
    // Fewer than all: damage of the data is noticed by its checksum.
    assert!(named < 20, "{named} of 40");
}
