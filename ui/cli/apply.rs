//! `tdtool prefetch --apply`: advised prefetches put into the source, built and measured.

use super::count::live;
use super::redirected::Redirected;
use crate::settings::Settings;
use crate::{message, terminal};
use clap::Args;
use engine::applied::{Applied, ApplyAsk, apply, build, check};
use engine::hot::Temporary;
use engine::topdown::LiveAsk;
use pmu::perf::HeldSignals;
use pmu::{Command, Stdout};
use report::documents::prefetch::Prefetch;
use report::files::{check_place, write_whole};
use std::collections::BTreeSet;
use std::path::PathBuf;
use tma::Result;

/// Heading of these options.
const APPLY: &str = "Applying";

#[derive(Args)]
pub struct ApplyArgs {
    /// Put prefetches into the C or C++ source, and keep those that gain
    #[arg(long, requires_all = ["build", "command"], help_heading = APPLY)]
    pub apply: bool,
    /// Command that builds the program, in a shell, as 'make -j2'
    #[arg(long, value_name = "CMD", requires = "apply", help_heading = APPLY)]
    build: Option<String>,
    /// Runs with and without a prefetch, for each distance
    #[arg(long, value_name = "N", default_value = "10", requires = "apply", value_parser = clap::value_parser!(u32).range(6..=1000), help_heading = APPLY)]
    rounds: u32,
    /// Iterations ahead to try (default: half to twice the advised, or beyond)
    #[arg(long, value_name = "N,…", value_delimiter = ',', requires = "apply", value_parser = clap::value_parser!(u64).range(1..=1_000_000), help_heading = APPLY)]
    distances: Vec<u64>,
    /// Write what gains to FILE as a patch, and restore the source
    #[arg(long, value_name = "FILE", requires = "apply", help_heading = APPLY)]
    patch: Option<PathBuf>,
}

impl ApplyArgs {
    /// Refuses a place where the patch cannot be written.
    pub fn check(&self) -> Result<()> {
        self.patch.as_ref().map_or(Ok(()), |path| check_place(path, &[], "--patch"))
    }
}

/// A build that succeeded, whose program is advised on and changed.
pub struct Applying<'a> {
    args: &'a ApplyArgs,
    settings: &'a Settings,
    build: LiveAsk,
    output: Temporary,
    /// A signal between runs ends the next one; the source is restored.
    signals: HeldSignals,
}

impl<'a> Applying<'a> {
    /// Builds the program as it is; the signal that ended that.
    ///
    /// # Errors
    /// The build fails; an earlier run was killed and left something.
    pub fn begin(
        settings: &'a Settings,
        args: &'a ApplyArgs,
    ) -> Result<std::result::Result<Self, i32>> {
        check()?;
        let words = ["sh", "-c", args.build.as_deref().unwrap_or_default()];
        let argv = words.map(Into::into).to_vec();
        let command = Command { argv, stdout: Stdout::Stderr, ..Command::default() };
        let applying = Self {
            args,
            settings,
            build: live(settings, &command, None)?,
            output: Temporary::new()?,
            signals: HeldSignals::start()?,
        };
        let nothing = Command::default();
        let ended = build(&applying.ask(&nothing, 0)?)?;
        Ok(ended.map_or(Ok(applying), Err))
    }

    fn ask(&self, command: &Command, most: usize) -> Result<ApplyAsk<'_>> {
        Ok(ApplyAsk {
            machine: self.settings.machine(),
            library: self.settings.library,
            build: self.build.clone(),
            run: live(self.settings, command, None)?,
            rounds: self.args.rounds,
            distances: self.args.distances.clone(),
            most,
            output: self.output.path(),
            restores: self.args.patch.is_some(),
        })
    }

    /// Applies the advice to at most so many places, and adds what came of it to the document; the signal that ended
    /// it early.
    ///
    /// # Errors
    /// The source could not be restored, or the patch not be written.
    pub fn end(
        mut self,
        command: &Command,
        most: usize,
        document: &mut Prefetch,
    ) -> Result<Option<i32>> {
        self.signals.hold_all()?;
        if document.advice.iter().any(|row| row.refused.is_none()) {
            message::note(&format!(
                "for each place and distance the source is changed and built, and the program run {} times; what does \
                 not gain is undone",
                2 * self.args.rounds
            ));
        }
        let is_terminal = terminal::shows_progress();
        let mut progress = |what: &str| {
            if is_terminal {
                message::plain(&format!("\r{what}\x1b[K"));
            }
        };
        let command = Command { stdout: Stdout::Ours, ..command.clone() };
        let redirected = Redirected::to(self.output.path())?;
        let applied = apply(&self.ask(&command, most)?, document, &mut progress);
        drop(redirected);
        if is_terminal {
            message::plain("\r\x1b[K");
        }
        let Applied { rows, patch, interrupted } = applied?;
        if rows.is_empty() {
            message::note("no prefetch is advised: the source is as it was");
        }
        if let Some(path) = &self.args.patch {
            write_whole(path, patch.as_bytes(), &[], "--patch")?;
        }
        let kept = rows.iter().filter(|row| row.kept).filter_map(|row| row.file.as_deref());
        let files: BTreeSet<&str> = kept.collect();
        if !files.is_empty() && self.args.patch.is_none() {
            let files: Vec<&str> = files.into_iter().collect();
            message::note(&format!("changed: {}, and what was built of it", files.join(", ")));
        }
        document.applied = rows;
        Ok(interrupted)
    }
}
