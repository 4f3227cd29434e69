//! The source lines of a function with their samples and the assembly of each; its callers and callees; functions
//! by the names that people type.

use crate::hot::Sources;
use profile::files::SearchPaths;
use profile::hot::{Annotated, AnnotatedLine, Profile, half_width};
use report::documents::report_code::{
    AnnotatedFunction, Callees, Callers, EventPart, SourceInstruction, SourceLine,
};
use std::collections::BTreeMap;
use tma::{Error, Result};

/// A file and line; `None`: not known.
type Place = Option<(String, u32)>;

/// Most functions whose source a page shows, and the least share of the samples of each.
const FUNCTIONS: usize = 5;
const LEAST: f64 = 0.01;

/// The function called `name`, line by line. Sources are looked for where the program names them, and below the
/// folders of `search`.
///
/// # Errors
/// There is no such function with samples, or there are several.
pub(super) fn annotated(
    profile: &mut Profile,
    name: &str,
    search: &SearchPaths,
) -> Result<AnnotatedFunction> {
    let index = function(profile, name)?.ok_or_else(|| none_called(profile, name))?;
    Ok(of_function(profile, index, search))
}

/// The hottest functions that have code, line by line.
pub(super) fn hottest(profile: &mut Profile, search: &SearchPaths) -> Vec<AnnotatedFunction> {
    let is_worth = |index: &usize| {
        let of = &profile.functions[*index];
        of.share >= LEAST && of.gap.is_none()
    };
    let found: Vec<usize> = (0..profile.functions.len()).filter(is_worth).take(FUNCTIONS).collect();
    found.into_iter().map(|index| of_function(profile, index, search)).collect()
}

fn of_function(profile: &mut Profile, index: usize, search: &SearchPaths) -> AnnotatedFunction {
    let code = profile.annotate(index);
    let of = &code.function;
    let mut sources = Sources::new(&search.roots, &of.path);
    let mut found = AnnotatedFunction {
        function: of.name.clone(),
        module: of.module.clone(),
        start: of.start.into(),
        end: of.end.into(),
        share: of.share,
        samples: of.samples,
        // The report says for all samples how exact they are.
        notes: code.notes.clone(),
        ..AnnotatedFunction::default()
    };
    found.lines = lines(&code, &mut sources);
    for line in &mut found.lines {
        line.events = events(profile, index, &code, line);
    }
    if code.blocks.is_empty() {
        // The note says why.
        found.missing.append(&mut found.notes);
    } else if found.lines.iter().all(|line| line.line.is_none()) {
        let why =
            "the program has no line information: compile it with -g, or install its debug file";
        found.missing.push(why.to_owned());
    }
    found.missing.extend(sources.missing());
    found.notes.extend(sources.notes());
    found
}

/// Lines in order: those of the function's own file, then inlined ones of others, then what has no line.
fn lines(code: &Annotated, sources: &mut Sources) -> Vec<SourceLine> {
    let all: f64 = code.function.share;
    let instructions = || code.blocks.iter().flat_map(|block| &block.lines);
    let own = own_file(code);
    let mut by_line: BTreeMap<(usize, String, u32), Vec<&AnnotatedLine>> = BTreeMap::new();
    for instruction in instructions() {
        let key = match &instruction.source {
            Some((file, line)) => (usize::from(Some(file) != own.as_ref()), file.clone(), *line),
            None => (2, String::new(), 0),
        };
        by_line.entry(key).or_default().push(instruction);
    }
    let most = |lines: &Vec<&AnnotatedLine>| lines.iter().map(|l| l.samples).sum::<u64>();
    let hottest = by_line.values().map(most).max().filter(|samples| *samples > 0);
    let share = |of: f64| if all > 0.0 { of / all } else { 0.0 };
    let row = |((_, file, line), of): ((usize, String, u32), Vec<&AnnotatedLine>)| {
        let samples = most(&of);
        let place: Place = (line > 0).then_some((file, line));
        let part = share(of.iter().map(|l| l.share).sum());
        let instruction = |l: &&AnnotatedLine| SourceInstruction {
            address: l.address.into(),
            text: l.text.clone(),
            share: share(l.share),
            samples: l.samples,
        };
        SourceLine {
            text: place.as_ref().and_then(|(file, line)| sources.line(file, *line)),
            file: place.as_ref().map(|p| p.0.clone()),
            line: place.map(|p| p.1),
            share: part,
            error: half_width(part, code.function.samples as f64),
            samples,
            hottest: Some(samples) == hottest,
            events: Vec::new(),
            instructions: of.iter().map(instruction).collect(),
        }
    };
    by_line.into_iter().map(row).collect()
}

/// The share of each of several events in a line.
fn events(
    profile: &Profile,
    function: usize,
    code: &Annotated,
    line: &SourceLine,
) -> Vec<EventPart> {
    let place: Place = line.file.clone().zip(line.line);
    let all = code.blocks.iter().flat_map(|block| &block.lines);
    let own = all.filter(|instruction| instruction.source == place);
    let ranges: Vec<_> =
        own.map(|one| one.address..one.address + one.bytes.len().max(1) as u64).collect();
    profile.event_shares(function, &ranges).into_iter().map(EventPart::from).collect()
}

/// The file of the function's first instruction with a line: it is not of inlined code.
fn own_file(code: &Annotated) -> Option<String> {
    if let Some(file) = &code.function.file {
        return Some(file.clone());
    }
    let lines = code.blocks.iter().flat_map(|block| &block.lines);
    lines.filter_map(|line| line.source.as_ref()).map(|(file, _)| file.clone()).next()
}

/// The hottest function that `name` names: in full, or without parameters, template arguments and namespaces.
///
/// # Errors
/// Several functions are called so.
fn function(profile: &Profile, name: &str) -> Result<Option<usize>> {
    let all = &profile.functions;
    let position = |whole: &str| all.iter().position(|f| f.name == whole);
    if let Some(index) = position(name).or_else(|| all.iter().position(|f| f.short == name)) {
        return Ok(Some(index));
    }
    // C++ names come with parameters and template arguments, which users leave out.
    let mut same: Vec<&str> = all.iter().map(|f| f.name.as_str()).collect();
    same.retain(|whole| plain(whole) == name || last(plain(whole)) == name);
    same.sort_unstable();
    same.dedup();
    match same.as_slice() {
        [] => Ok(None),
        [only] => Ok(position(only)),
        _ => Err(Error::usage(format!("several functions are called {name}"))
            .because(same.join("\n"))
            .hint("give one of these names in full")),
    }
}

/// The error for a function without samples.
fn none_called(profile: &Profile, name: &str) -> Error {
    let error = Error::failed(format!("no samples in a function {name}"));
    let known = profile.functions.iter().map(|f| f.name.as_str());
    let known = known.flat_map(|whole| [whole, plain(whole), last(plain(whole))]);
    match tma::error::nearest(name, known) {
        Some(other) => error.hint(format!("did you mean `{other}`?")),
        None => with_hottest(profile, error),
    }
}

/// The error with the functions that have samples.
fn with_hottest(profile: &Profile, error: Error) -> Error {
    /// Functions that are named.
    const NAMED: usize = 3;
    let hottest: Vec<&str> =
        profile.functions.iter().take(NAMED).map(|f| f.short.as_str()).collect();
    match hottest.is_empty() {
        true => error.because("there are no samples"),
        false => error
            .because("its name is another one, it ran too little, or the compiler inlined it")
            .hint(format!("the hottest are {}; --functions N lists more", hottest.join(", "))),
    }
}

/// A function's name up to its parameters and template arguments: `dot` of `dot(float const*, int)`. The names
/// `operator()` and `operator<` are left whole.
fn plain(name: &str) -> &str {
    match name.find(['(', '<']) {
        Some(end) if end > 0 && !name.contains("operator") => &name[..end],
        _ => name,
    }
}

/// A name without its namespaces and result type.
fn last(name: &str) -> &str {
    let name = name.rsplit("::").next().unwrap_or(name);
    name.rsplit(' ').next().unwrap_or(name)
}

/// The callers of the function that is called so, those with most samples first, and theirs.
///
/// # Errors
/// There are no call chains, or no such function.
pub(super) fn callers(profile: &mut Profile, name: &str) -> Result<Callers> {
    let whole = known(profile, name, "callers")?;
    let (callers, tree) = (profile.callers(&whole), profile.call_trees(&whole).callers);
    Ok(Callers { function: name.to_owned(), callers, tree })
}

/// The functions that the function calls, likewise.
///
/// # Errors
/// As [`callers`].
pub(super) fn callees(profile: &mut Profile, name: &str) -> Result<Callees> {
    let whole = known(profile, name, "callees")?;
    Ok(Callees { function: name.to_owned(), tree: profile.call_trees(&whole).callees })
}

/// The name of the function in call chains.
fn known(profile: &mut Profile, name: &str, what: &str) -> Result<String> {
    if !profile.has_chains() {
        return Err(Error::failed(format!("the {what} of {name} are unknown"))
            .because("the samples have no call chains")
            .hint("record with -g: `tdtool record -g -o FILE -- COMMAND`"));
    }
    if profile.calls(name).samples > 0 {
        return Ok(name.to_owned());
    }
    let whole = function(profile, name)?.map(|index| profile.functions[index].name.clone());
    whole.filter(|whole| profile.calls(whole).samples > 0).ok_or_else(|| none_called(profile, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpp_names_are_found_without_what_nobody_types() {
        assert_eq!(plain("dot(float const*, float const*, int)"), "dot");
        assert_eq!(plain("sum<int, std::vector<int> >(int)"), "sum");
        assert_eq!(last(plain("void kernels::run<float>(int)")), "run");
        assert_eq!(plain("S::operator()(int)"), "S::operator()(int)");
        assert_eq!(plain("(anonymous namespace)::f"), "(anonymous namespace)::f");
    }
}
