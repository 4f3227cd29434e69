//! Finds regions: of which command or process, and where they begin and end in files, by markers, by name, or from
//! one source line to another (`parse.c:120..140`).

use crate::function_name;
use pmu::Command;
use probe::count::Wanted;
use probe::facts::{Named, NoCode, StaticProbe, functions, static_probes};
use probe::regions::{Edge, Label, Site, function_sites, libraries};
use profile::files::SearchPaths;
use profile::module::{Module, ModuleKind};
use profile::symbols::Symbols;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tma::{Error, Result};

/// The program to follow.
#[derive(Debug, Clone)]
pub enum Followed {
    /// A command, from its start to its end.
    Command(Command),
    /// A process that runs already, for so long.
    Process(i32, Duration),
}

/// Which regions.
#[derive(Debug, Clone)]
pub struct RegionsAsk {
    /// The program.
    pub of: Followed,
    /// Files with markers; the program and its libraries if none.
    pub modules: Vec<PathBuf>,
    /// Functions, or pairs of static probes or source lines, that are regions, too.
    pub named: Vec<String>,
}

/// Who defines markers, in their notes.
const PROVIDER: &str = "tdtool";
/// Bytes of a marker's nop.
const NOP: u64 = 5;

/// A file, with its static probes.
struct Searched {
    path: PathBuf,
    probes: std::result::Result<Vec<StaticProbe>, NoCode>,
}

/// The markers of the files that are named, else of the program and its libraries, and the regions that are
/// asked for by name.
///
/// # Errors
/// There are none.
pub(super) fn sites(program: &Path, ask: &RegionsAsk) -> Result<Vec<Site>> {
    let mut files = ask.modules.clone();
    for file in &files {
        tma::files::open(file).map_err(|e| {
            tma::error::unreadable(file, &e)
                .hint("--module names the ELF file that has the markers, such as a library")
        })?;
    }
    if files.is_empty() {
        files.push(program.to_owned());
        files.extend(match ask.of {
            Followed::Command(_) => libraries(program),
            Followed::Process(pid, _) => mapped(pid),
        });
    }
    let searched = |path: &PathBuf| {
        let path = path.canonicalize().unwrap_or_else(|_| path.clone());
        Searched { probes: static_probes(&path), path }
    };
    let searched: Vec<Searched> = files.iter().map(searched).collect();
    let mut sites: Vec<Site> = searched.iter().flat_map(markers).collect();
    for name in &ask.named {
        sites.extend(match name.split_once("..") {
            Some((begin, end)) => match of(begin, end)? {
                Some(lines) => between_lines(&paths(&searched), name, &lines)?,
                None => between(&searched, name, (begin, end))?,
            },
            None => function(&searched, name)?,
        });
    }
    // One range of code cannot be probed twice: a marker is one of the function that is asked for.
    let wide: Vec<Wanted> = sites.iter().map(|site| site.code.clone()).collect();
    for site in &mut sites {
        let is_around = |one: &&Wanted| {
            one.path == site.code.path
                && one.range.start <= site.code.range.start
                && site.code.range.end <= one.range.end
        };
        if let Some(around) =
            wide.iter().filter(is_around).max_by_key(|w| w.range.end - w.range.start)
        {
            site.code = around.clone();
        }
    }
    match searched.iter().find_map(|of| of.probes.as_ref().err()).filter(|_| sites.is_empty()) {
        None if !sites.is_empty() => Ok(sites),
        why => Err(Error::failed(format!("{} has no markers", program.display()))
            .because(why.map_or_else(
                || "it has no notes (.note.stapsdt) of the provider tdtool".to_owned(),
                NoCode::to_string,
            ))
            .hint(
                "mark regions with src/markers/tdtool.h (C, C++) or the crate tdtool-markers (Rust); \
                 --module FILE names another file, such as a library; --region FUNCTION needs no marker",
            )),
    }
}

fn paths(searched: &[Searched]) -> Vec<&Path> {
    searched.iter().map(|of| of.path.as_path()).collect()
}

/// The files whose code a process has mapped (proc_pid_maps(5)).
fn mapped(pid: i32) -> Vec<PathBuf> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let file = |line: &str| {
        let is_code = line.split(' ').nth(1)?.contains('x');
        let path = PathBuf::from(&line[line.find('/')?..]);
        (is_code && path.is_file()).then_some(path)
    };
    let own = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let all: BTreeSet<PathBuf> = maps.lines().filter_map(file).collect();
    all.into_iter().filter(|path| Some(path) != own.as_ref()).collect()
}

/// The markers of a file.
fn markers(of: &Searched) -> Vec<Site> {
    let own = of.probes.iter().flatten().filter(|probe| probe.provider == PROVIDER);
    own.filter_map(|probe| {
        let edge = match probe.name.as_str() {
            "begin" => Edge::Begin,
            "end" => Edge::End,
            _ => return None,
        };
        let code = Wanted { path: of.path.clone(), range: probe.at..probe.at + NOP };
        Some(Site { code, at: probe.at, edge, label: Label::Register(probe.register()?) })
    })
    .collect()
}

/// From each static probe with the one name to those with the other one.
fn between(files: &[Searched], name: &str, edges: (&str, &str)) -> Result<Vec<Site>> {
    let mut all = Vec::new();
    for of in files {
        let known = functions(&of.path).unwrap_or_default();
        for probe in of.probes.iter().flatten() {
            let own = format!("{}:{}", probe.provider, probe.name);
            let edge = match own.as_str() {
                own if own == edges.0 => Edge::Begin,
                own if own == edges.1 => Edge::End,
                _ => continue,
            };
            let around = known.iter().find(|one| one.range.contains(&probe.at));
            let range = around.map_or(probe.at..probe.at + 1, |one| one.range.clone());
            let code = Wanted { path: of.path.clone(), range };
            all.push(Site { code, at: probe.at, edge, label: Label::Fixed(name.to_owned()) });
        }
    }
    let has = |edge| all.iter().any(|site: &Site| site.edge == edge);
    match (has(Edge::Begin), has(Edge::End)) {
        (true, true) => Ok(all),
        (begins, _) => {
            let missing = if begins { edges.1 } else { edges.0 };
            Err(Error::failed(format!("there is no static probe `{missing}`"))
                .because("no note (.note.stapsdt) of the searched files has it")
                .hint("`readelf -n FILE` lists them; --module FILE names the file that has them"))
        }
    }
}

/// The functions with this name.
fn function(files: &[Searched], name: &str) -> Result<Vec<Site>> {
    let is = |one: &Named| one.name.iter().chain(&one.aliases).any(|n| function_name::is(n, name));
    let mut all = Vec::new();
    let mut names = Vec::new();
    for of in files {
        for one in functions(&of.path).unwrap_or_default() {
            if is(&one) {
                let code = Wanted { path: of.path.clone(), range: one.range };
                all.extend(function_sites(&code, name).map_err(|why| {
                    Error::failed(format!("`{name}` cannot be a region"))
                        .because(why)
                        .hint("mark what matters in it with src/markers/tdtool.h")
                })?);
            } else {
                names.extend(one.name);
            }
        }
    }
    if all.is_empty() {
        let near = function_name::did_you_mean(names.iter().map(String::as_str), name);
        let hint = near.unwrap_or_else(|| "--module FILE names the file that has it".to_owned());
        let searched: Vec<String> = files.iter().map(|of| of.path.display().to_string()).collect();
        let cause = match names.is_empty() {
            true => format!("{} has no symbols", searched.join(", ")),
            false => format!("it is no symbol of {}; it may be inlined", searched.join(", ")),
        };
        return Err(Error::failed(format!("there is no function `{name}`"))
            .because(cause)
            .hint(hint));
    }
    Ok(all)
}

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
fn of(begin: &str, end: &str) -> Result<Option<Lines>> {
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
fn between_lines(files: &[&Path], name: &str, lines: &Lines) -> Result<Vec<Site>> {
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
