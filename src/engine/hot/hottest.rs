//! The functions that hold most of the samples of a command, to be analysed in further runs.

use super::Temporary;
use crate::processes::{has_ended, working_child};
use crate::record::{SampleAsk, record};
use crate::topdown::live::LiveAsk;
use pmu::Target;
use pmu::machine::Machine;
use profile::files::SearchPaths;
use profile::hot::{Filter, HotFunction, Profile};
use profile::session;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tma::tables::Library;
use tma::{Error, Result};

/// A function with its share of the samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Hot {
    /// Its file.
    pub path: PathBuf,
    /// Its demangled name.
    pub name: String,
    /// Its addresses (p_vaddr).
    pub range: Range<u64>,
    /// Share of all samples, 0 to 1.
    pub share: f64,
    /// Why its code is not known: it is the kernel's, or in no file.
    pub gap: Option<String>,
    /// First addresses of its blocks with samples, and how many.
    pub blocks: Vec<(u64, u64)>,
}

impl Hot {
    /// The function of a profile with this number.
    pub(crate) fn of(profile: &mut Profile, number: usize) -> Self {
        let blocks = profile.block_samples(number);
        let of = &profile.functions[number];
        Self {
            path: PathBuf::from(&of.path),
            name: of.name.clone(),
            range: of.start..of.end,
            share: of.share,
            gap: of.gap.as_ref().map(ToString::to_string),
            blocks,
        }
    }
}

/// Whether a function is the kernel's, or of one of its modules.
pub(crate) fn is_kernel(of: &HotFunction) -> bool {
    of.path.starts_with("[kernel") || of.module.starts_with("[kernel")
}

/// Share of the samples in the kernel.
pub(crate) fn kernel_share(profile: &Profile) -> f64 {
    profile.functions.iter().filter(|of| is_kernel(of)).map(|of| of.share).sum()
}

/// Results of a sampled run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hottest {
    /// The share of the samples that was asked for, 0 to 1.
    pub asked: f64,
    /// The fewest functions that together hold the share, hottest first.
    pub functions: Vec<Hot>,
    /// Name of the sampled event.
    pub event: String,
    /// Samples.
    pub samples: u64,
    /// The mean period of samples: nanoseconds of a clock, else of what the event counts.
    pub period: Option<f64>,
    /// Wall time of the run.
    pub seconds: f64,
    /// How it ended.
    pub exit: Option<pmu::Exit>,
    /// The signal that interrupted it.
    pub interrupted: Option<i32>,
}

impl Hottest {
    /// Whether the code at an address of a file is in one of the functions.
    pub(crate) fn has(&self, file: &str, at: u64) -> bool {
        let is_it = |one: &Hot| one.range.contains(&at) && one.path == Path::new(file);
        self.functions.iter().any(is_it)
    }
}

/// Why no sample was taken in this many seconds, and the remedy.
pub(crate) fn never_sampled(ask: &LiveAsk, seconds: f64) -> (String, String) {
    let child = || match ask.target {
        Target::Process(pid) => working_child(pid),
        _ => None,
    };
    match ask.target {
        Target::Command => (
            format!("the command ended after {seconds:.3} s, before its first sample"),
            "give it more to do".to_owned(),
        ),
        Target::Process(pid) if has_ended(pid) => {
            (format!("it ended after {seconds:.3} s, before its first sample"), AGAIN.to_owned())
        }
        _ => (
            format!("nothing of it ran in a window of {seconds:.1} s"),
            child()
                .unwrap_or_else(|| "try again while it works, or longer: --duration N".to_owned()),
        ),
    }
}

/// What to do where the command of one run has ended before it was measured.
pub(crate) const AGAIN: &str = "without --duration a command runs again for each measurement";

/// Runs and samples the command of `ask`: which functions hold `share` of the samples, 0 to 1.
///
/// # Errors
/// The command cannot be run, or nothing can be sampled here.
pub fn hottest(machine: &Machine, library: &Library, ask: &LiveAsk, share: f64) -> Result<Hottest> {
    let file = Temporary::new()?;
    let path = file.path();
    let recorded = record(machine, library, ask, Some(&SampleAsk::default()), path, &mut |_| ());
    let recorded = recorded.map_err(|error| file.explained(error))?;
    let outcome = recorded.outcome;
    let mut found = Hottest {
        asked: share,
        seconds: outcome.report.duration.unwrap_or(0.0),
        exit: outcome.exit,
        interrupted: outcome.interrupted,
        ..Hottest::default()
    };
    if found.interrupted.is_some() {
        return Ok(found);
    }
    let unknown = || Error::not_possible("the hot functions are not known");
    let named = "name the functions with --functions, or a file with --module";
    if recorded.sampled.is_none() {
        let why = recorded.losses.first().map_or(session::NO_SAMPLES, String::as_str);
        return Err(unknown().because(why).hint(named));
    }
    if !session::has_samples(path)? {
        let (why, remedy) = never_sampled(ask, found.seconds);
        return Err(match ask.target {
            Target::Command => unknown().because(why).hint(format!("{remedy}, or {named}")),
            _ => unknown().because(why).hint(remedy),
        });
    }
    let recording = session::open(path, false)?;
    let mut profile = Profile::new(&recording, &Filter::default(), SearchPaths::default())?;
    (found.event, found.samples) = (profile.event.clone(), profile.samples);
    found.period = profile.period();
    let mut held = 0.0;
    let mut wanted = 0;
    while wanted < profile.functions.len() && held < share {
        held += profile.functions[wanted].share;
        wanted += 1;
    }
    found.functions = (0..wanted).map(|number| Hot::of(&mut profile, number)).collect();
    Ok(found)
}
