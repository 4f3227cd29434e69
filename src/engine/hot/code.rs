//! A recording's hot functions and blocks, into a report.

use super::entries::{self, CountAsk};
use super::with_values::Loops;
use crate::block::Measurer;
use crate::core_model::CoreModel;
use crate::documents::Report;
use crate::documents::report_code::{BlockRow, Callers, Clean, FunctionRow, Sampled};
use crate::estimate::{EstimateAsk, estimate};
use crate::files::write_whole;
use bench::{Options, Status};
use isa::code::Block;
use pmu::Command;
use profile::files::SearchPaths;
use profile::hot::{Filter, HotBlock, Profile, threads};
use profile::record::Record;
use profile::recording::Recording;
use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tma::{Error, Result};

/// Which functions and blocks to report.
#[derive(Debug, Clone)]
pub struct CodeAsk {
    /// Most functions.
    pub functions: usize,
    /// Most blocks.
    pub blocks: usize,
    /// The function whose callers are listed.
    pub callers: Option<String>,
    /// Which samples.
    pub filter: Filter,
    /// Where programs are.
    pub search: SearchPaths,
    /// The core to measure the hottest blocks on, if they are to be measured in isolation.
    pub measure: Option<CoreModel>,
    /// The command whose values the loops around them are measured with, in further runs.
    pub command: Option<Command>,
    /// Where to count the entries of the hottest blocks, if at all.
    pub count: Option<CountAsk>,
    /// The command to estimate the top-down tree of, in further runs.
    pub estimate: Option<EstimateAsk>,
    /// Where folded stacks go; `-` is standard output.
    pub folded: Option<PathBuf>,
}

impl Default for CodeAsk {
    fn default() -> Self {
        Self {
            functions: 10,
            blocks: 5,
            callers: None,
            filter: Filter::default(),
            search: SearchPaths::default(),
            measure: None,
            command: None,
            count: None,
            estimate: None,
            folded: None,
        }
    }
}

/// How long a block may wait for a core that nothing else uses.
const BUDGET: Duration = Duration::from_secs(2);

/// Attributes the samples of a recording as asked.
///
/// # Errors
/// An event or thread that the recording does not have.
pub fn profile(recording: &Recording, ask: &CodeAsk) -> Result<Profile> {
    if let Some(event) = ask.filter.event
        && event >= recording.events.len()
    {
        let names: Vec<&str> = recording.events.iter().map(|e| e.name.as_str()).collect();
        return Err(Error::usage(format!("the recording has no event {event}")).because(format!(
            "it has {}: {}",
            names.len(),
            names.join(", ")
        )));
    }
    known_threads(recording, &ask.filter)?;
    let mut profile = Profile::new(recording, &ask.filter, ask.search.clone());
    profile.find_lines(ask.functions);
    Ok(profile)
}

/// Refuses a thread without samples, and lists those that have some.
fn known_threads(recording: &Recording, filter: &Filter) -> Result<()> {
    /// Names that an error lists.
    const TOLD: usize = 12;
    if filter.names.is_empty() && filter.threads.is_empty() {
        return Ok(());
    }
    let threads = threads(recording);
    let is_process = |number: u32| {
        recording.records.iter().any(|record| match record {
            Record::Sample { sample, .. } => sample.pid == Some(number),
            _ => false,
        })
    };
    let missing =
        |number: &&u32| !threads.iter().any(|t| t.tid == **number) && !is_process(**number);
    // A thread may have had the name before its last sample: only one that no thread record has.
    let unnamed = |name: &&String| {
        !threads.iter().any(|t| t.name == **name)
            && !recording
                .records
                .iter()
                .any(|r| matches!(r, Record::Name { name: n, .. } if n == *name))
    };
    let number = filter.threads.iter().find(missing).map(u32::to_string);
    let Some(wanted) = number.or_else(|| filter.names.iter().find(unnamed).cloned()) else {
        return Ok(());
    };
    let mut names: Vec<&str> = threads.iter().map(|t| t.name.as_str()).collect();
    names.retain(|name| !name.is_empty());
    let mut told: Vec<&str> = Vec::new();
    for name in names.iter().copied() {
        if !told.contains(&name) {
            told.push(name);
        }
    }
    let more =
        if told.len() > TOLD { format!(" and {} more", told.len() - TOLD) } else { String::new() };
    told.truncate(TOLD);
    let error = Error::failed(format!("no samples of a thread {wanted}"));
    let error = match told.is_empty() {
        true => error.because("its threads have no names"),
        false => error.because(format!("it has samples of {}{more}", told.join(", "))),
    };
    Err(match tma::error::nearest(&wanted, names) {
        Some(other) => error.hint(format!("did you mean `{other}`?")),
        None => error,
    })
}

/// Enters functions, blocks and callers into a report. `progress` gets the number of measured
/// blocks and of all. The signal that interrupted the counting of entries, if one did.
///
/// # Errors
/// The sandbox cannot be started; callers are asked for and there are no call chains, or no such
/// function.
pub fn enter(
    report: &mut Report,
    profile: &mut Profile,
    ask: &CodeAsk,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Option<i32>> {
    let mut interrupted = None;
    report.sampled = Some(Sampled {
        event: profile.event.clone(),
        skid: profile.skid.explain().to_owned(),
        samples: profile.samples,
        lost: profile.lost,
        notes: profile.notes.clone(),
    });
    if (ask.callers.is_some() || ask.folded.is_some()) && profile.chains_are_cut() {
        let note = "most call chains end after one caller: the program keeps no frame pointers; compile \
                    it with -fno-omit-frame-pointer";
        report.notes.push(note.to_owned());
    }
    if let Some((from, to)) = ask.filter.time {
        let seconds = |ns: u64| {
            if ns == u64::MAX { "the end".to_owned() } else { format!("{} s", ns as f64 / 1e9) }
        };
        let (from, to) = (seconds(from), seconds(to));
        report.notes.push(format!("only samples from {from} to {to}; counts are of the whole run"));
    }
    report.functions =
        profile.functions.iter().take(ask.functions).map(FunctionRow::from).collect();
    let blocks = profile.blocks(ask.blocks);
    report.blocks =
        blocks.iter().map(|b| BlockRow::new(b, &profile.functions[b.function])).collect();
    if let Some(model) = &ask.measure {
        let options = Options { budget: BUDGET, ..Options::default() };
        let mut measurer = Measurer::new(options, model);
        let of = |command| Loops::new(model, command, report.duration);
        let mut loops = ask.command.as_ref().map(of);
        for (number, block) in blocks.iter().enumerate() {
            progress(number, blocks.len());
            let row = &mut report.blocks[number];
            row.measured = Some(measured(&mut measurer, profile, block)?);
            if let Some(loops) = &mut loops {
                row.with_values = loops.measured(Path::new(&row.path), block)?;
            }
        }
        if let Some(runs @ 1..) = loops.map(|loops| loops.runs) {
            let plural = if runs == 1 { "" } else { "s" };
            report.notes.push(format!(
                "values of loops are of {runs} further run{plural} of the command, ended there"
            ));
        }
        progress(blocks.len(), blocks.len());
        let new = |note: &&String| !report.notes.contains(note);
        let new: Vec<String> = model.notes.iter().filter(new).cloned().collect();
        report.notes.extend(new);
    }
    if let Some(count) = &ask.count {
        interrupted = entries::enter(report, profile, &blocks, count, progress)?;
    }
    if let (Some(ask), None) = (&ask.estimate, interrupted) {
        let found = estimate(report, profile, ask)?;
        report.estimate = Some(found.0);
        interrupted = found.1;
    }
    if let Some(path) = &ask.folded {
        write_folded(profile, path)?;
    }
    if let Some(name) = &ask.callers {
        report.callers = Some(Callers { function: name.clone(), callers: callers(profile, name)? });
    }
    Ok(interrupted)
}

fn write_folded(profile: &mut Profile, path: &Path) -> Result<()> {
    let mut text = String::new();
    for (stack, samples) in profile.folded() {
        let _ = writeln!(text, "{stack} {samples}");
    }
    if path.as_os_str() != "-" {
        return write_whole(path, text.as_bytes(), &[], "--folded");
    }
    // Not by its name in /dev: that would cut off what a file holds already.
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Error::failed("cannot write folded stacks to standard output").because(e))
        }
        // A reader that went away (| head) has what it wanted.
        _ => Ok(()),
    }
}

fn callers(profile: &mut Profile, name: &str) -> Result<Vec<profile::hot::Caller>> {
    if !profile.has_chains() {
        return Err(Error::failed(format!("the callers of {name} are unknown"))
            .because("the samples have no call chains")
            .hint("record with -g"));
    }
    let found = profile.callers(name);
    if !found.is_empty() {
        return Ok(found);
    }
    // C++ names come with parameters and template arguments, which users leave out.
    let mut same: Vec<String> = profile.functions.iter().map(|f| f.name.clone()).collect();
    same.retain(|whole| plain(whole) == name || last(plain(whole)) == name);
    same.sort();
    same.dedup();
    let found = match same.as_slice() {
        [only] => profile.callers(only),
        [] => found,
        _ => {
            return Err(Error::usage(format!("several functions are called {name}"))
                .because(same.join("\n"))
                .hint("give one of these names in full"));
        }
    };
    if found.is_empty() {
        let error = Error::failed(format!("no samples in a function {name}"));
        let known = profile.functions.iter().map(|f| f.name.as_str());
        let known = known.flat_map(|whole| [whole, plain(whole), last(plain(whole))]);
        return Err(match tma::error::nearest(name, known) {
            Some(other) => error.hint(format!("did you mean `{other}`?")),
            None => error,
        });
    }
    Ok(found)
}

/// A function's name up to its parameters and template arguments: `dot` of `dot(float const*, int)`.
/// Those of `operator()` and `operator<` are part of its name, and it is left whole.
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

/// The block in isolation, without a call, return or indirect jump at its end.
fn measured(measurer: &mut Measurer, profile: &mut Profile, block: &HotBlock) -> Result<Clean> {
    let not = |reason: String| Clean {
        status: "failed".to_owned(),
        reason: Some(reason),
        ..Clean::default()
    };
    let bytes = match profile.code(block) {
        Ok(bytes) => bytes,
        Err(gap) => return Ok(not(gap)),
    };
    let decoded = match Block::decode(&bytes) {
        Ok(decoded) => decoded,
        Err(error) => return Ok(not(error.to_string())),
    };
    let (decoded, without) = match decoded.without_exit() {
        Ok((rest, left)) => (rest, left.map(|last| last.text.clone())),
        Err(why) => return Ok(not(why)),
    };
    let result = measurer.measure(&decoded, false)?;
    let throughput = result.throughput.as_ref();
    Ok(Clean {
        status: result.status.word().to_owned(),
        reason: result.reason.clone().filter(|_| result.status != Status::Ok),
        cycles: throughput.map(|t| t.cycles),
        range: throughput.map(|t| (t.low, t.high)),
        looped: result.forms.as_ref().and_then(|f| f.looped.trusted()),
        clock: throughput.map(|t| t.clock.to_owned()),
        violated: result.violated().into_iter().map(str::to_owned).collect(),
        without,
        bound: result.hierarchy.bound.map(str::to_owned),
    })
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
