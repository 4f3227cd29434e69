//! The source lines of a function, read from its source files.

use crate::tui::state::SourceLines;
use profile::hot::Annotated;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};

/// Maximum length of a line in bytes, and maximum number of lines read from a file.
const LONGEST_LINE: u64 = 4096;
const MOST_LINES: u32 = 1_000_000;

/// The source lines of the instructions, as far as their files exist.
pub fn source_lines(annotated: &Annotated) -> SourceLines {
    let mut wanted: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for (file, line) in annotated.blocks.iter().flat_map(|b| &b.lines).flat_map(|l| &l.source) {
        wanted.entry(file).or_default().insert(*line);
    }
    let mut found = SourceLines::new();
    for (name, lines) in wanted {
        let regular = std::fs::metadata(name).is_ok_and(|m| m.is_file());
        if let Some(file) = File::open(name).ok().filter(|_| regular) {
            read(BufReader::new(file), name, &lines, &mut found);
        }
    }
    found
}

fn read(mut file: impl BufRead, name: &str, lines: &BTreeSet<u32>, found: &mut SourceLines) {
    let last = lines.last().copied().unwrap_or(0).min(MOST_LINES);
    let mut line = Vec::new();
    for number in 1..=last {
        line.clear();
        match (&mut file).take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if lines.contains(&number) => {
                let text = String::from_utf8_lossy(&line).trim_end().replace('\t', "    ");
                found.insert((name.to_owned(), number), text);
            }
            Ok(_) => {}
        }
        if !line.ends_with(b"\n") && line.len() as u64 == LONGEST_LINE {
            // Not source code; the numbers of further lines would be wrong.
            return;
        }
    }
}
