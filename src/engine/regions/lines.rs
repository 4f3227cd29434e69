//! Regions from one source line to another: `parse.c:120..140`.

use probe::count::Wanted;
use probe::facts::functions;
use probe::regions::{Edge, Label, Site};
use profile::files::SearchPaths;
use profile::module::{Module, ModuleKind};
use profile::symbols::Symbols;
use std::path::Path;
use tma::{Error, Result};

/// Two lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lines {
    /// The end of its path.
    file: String,
    begin: u32,
    end: u32,
}

/// The lines that `begin..end` means: `FILE:10..20` or `FILE:10..FILE:20`; `None` if it means something else.
///
/// # Errors
/// Lines of two files.
pub(super) fn of(begin: &str, end: &str) -> Result<Option<Lines>> {
    let line = |text: &str| {
        let (file, line) = text.rsplit_once(':')?;
        Some((file.to_owned(), line.parse::<u32>().ok()?))
    };
    let Some((file, begin)) = line(begin) else { return Ok(None) };
    let end = match (end.parse(), line(end)) {
        (Ok(end), _) => end,
        (Err(_), Some((other, end))) if other == file => end,
        (Err(_), Some(_)) => {
            return Err(Error::usage("a region begins and ends in one source file")
                .hint("--region FILE.c:10..20"));
        }
        (Err(_), None) => return Ok(None),
    };
    Ok(Some(Lines { file, begin, end }))
}

/// In each function with code of both lines, from the first instruction of the one to the first of the other after it.
///
/// # Errors
/// There is none.
pub(super) fn between(files: &[&Path], name: &str, lines: &Lines) -> Result<Vec<Site>> {
    let mut all = Vec::new();
    let mut symbols = Symbols::new(SearchPaths::default());
    let (mut begins, mut ends) = (false, false);
    for path in files {
        let module = Module {
            path: path.display().to_string(),
            kind: ModuleKind::File,
            ..Module::default()
        };
        let mut at = |line| symbols.line_addresses(&module, &lines.file, line);
        let (begin, end) = (at(lines.begin), at(lines.end));
        (begins, ends) = (begins || !begin.is_empty(), ends || !end.is_empty());
        if begin.is_empty() || end.is_empty() {
            continue;
        }
        for function in functions(path).unwrap_or_default() {
            let first = |of: &[u64], from: u64| {
                of.iter().copied().find(|at| *at >= from && function.range.contains(at))
            };
            let Some(begin) = first(&begin, 0) else { continue };
            // Some of the line may have been moved to before the first one.
            let Some(end) = first(&end, begin).or_else(|| first(&end, 0)) else { continue };
            let code = Wanted { path: path.to_path_buf(), range: function.range.clone() };
            for (at, edge) in [(begin, Edge::Begin), (end, Edge::End)] {
                let label = Label::Fixed(name.to_owned());
                all.push(Site { code: code.clone(), at, edge, label });
            }
        }
    }
    if all.is_empty() {
        let Lines { file, begin, end } = lines;
        let why = match (begins, ends) {
            (true, true) => format!("no function has code of lines {begin} and {end}"),
            (true, false) => format!("no code is known of line {end}"),
            _ => format!("no code is known of line {begin}"),
        };
        return Err(Error::failed(format!("there is no region {name} of {file}"))
            .because(why)
            .hint("compile with -g; an optimized line may have no code of its own"));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_from_probes() {
        let expected = Lines { file: "src/a.c".into(), begin: 10, end: 20 };
        assert_eq!(of("src/a.c:10", "20").unwrap(), Some(expected.clone()));
        assert_eq!(of("src/a.c:10", "src/a.c:20").unwrap(), Some(expected));
        assert_eq!(of("lib:start", "lib:end").unwrap(), None);
        assert!(of("a.c:10", "b.c:20").is_err());
    }
}
