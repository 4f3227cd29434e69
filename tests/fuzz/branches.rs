//! Files with recorded branches, from their bytes to every export: shared by the fuzz target and by the
//! ordinary tests.

use branches::stacks::{Analysis, analyse, of_counts};
use profile::files::{Program, SearchPaths};
use profile::text::{self, Counts, Kind};
use report::documents::branches::Branches;
use report::render::branches as render;
use report::render::width::Page;
use std::path::{Path, PathBuf};

/// A program at 0x400000, with a function `main` from 0x400078 to 0x400098.
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/block/marked");

/// Feeds `data` to all of them, as text of each tool whatever it looks like, and as a file.
///
/// # Panics
/// More comes out than there is, an error says nothing, or an export is read as something else.
pub fn feed(data: &[u8]) {
    let search = SearchPaths { programs: vec![program_path()], ..SearchPaths::default() };
    let program = Program::read(&program_path()).expect("the program is there");
    for kind in [Kind::PerfScript, Kind::Lackey] {
        let Ok(stream) = text::parse(data, "a text", kind) else { continue };
        let (found, _) = analyse(&stream, None, &search).expect("it can be read again");
        found.iter().flatten().for_each(|one| bounded(one, data.len()));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("recording");
    std::fs::write(&path, data).expect("a file");
    if let Ok(counts) = Counts::read(&path, &program) {
        bounded(&of_counts(&counts, &program, &search), data.len());
    }
    match engine::branches::branches(std::slice::from_ref(&path), None, &search) {
        Ok(document) => exported(&document, &program, folder.path(), &search),
        Err(error) => assert!(error.cause().is_some() || error.remedy().is_some(), "{error:?}"),
    }
}

/// The folder of the package is that of the tests or of the fuzz targets.
fn program_path() -> PathBuf {
    let path = PathBuf::from(PROGRAM);
    if path.exists() { path } else { PathBuf::from(PROGRAM.replacen("/tests/fuzz/", "/", 1)) }
}

fn bounded(found: &Analysis, bytes: usize) {
    let sums = &found.sums;
    assert!(sums.edges.len() <= bytes && sums.ranges.len() <= bytes && found.loops.len() <= bytes);
    assert!(found.loops.iter().all(|(shape, _)| shape.head <= shape.back.max(shape.target)));
}

/// All exports; those that we read ourselves are read as what was written.
fn exported(document: &Branches, program: &Program, folder: &Path, search: &SearchPaths) {
    let text = |columns| render::text(document, 3, Page::of(columns));
    let _ = (text(None), text(Some(40)), render::csv(document));
    for event in &document.events {
        assert!(!render::pprof(document, event).is_empty());
    }
    let Some(edge) = document.edges.first() else { return };
    let _ = render::bolt(document, &edge.module);
    if edge.module != program.path() {
        return;
    }
    let formats = [render::unsymbolized as fn(&Branches, &str) -> String, |document, module| {
        let program = Program::read(&program_path()).expect("the program is there");
        render::autofdo(document, module, &program)
    }];
    for format in formats {
        let written = format(document, &edge.module);
        let path = folder.join("export");
        std::fs::write(&path, &written).expect("a file");
        // Without branches and ranges there is nothing to read: their numbers are all.
        let is_empty = written.lines().all(|line| line == "0");
        let again = match engine::branches::branches(&[path], None, search) {
            Ok(again) => again,
            Err(_) if is_empty => continue,
            Err(error) => panic!("what was exported cannot be read: {error:?}\n{written}"),
        };
        assert_eq!(format(&again, &edge.module), written);
    }
}
