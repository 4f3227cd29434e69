//! Records a live measurement: its counts and samples go to a session file while it runs. This file samples without
//! counts of the whole run, for a command or process that something else starts and follows.
//!
//! | file | concern |
//! |---|---|
//! | `sample` | what is sampled: that, what locates nodes, else cycles or the CPU clock |
//! | `chooser` | events as the kernel takes them, and notes on them |
//! | `by_name` | events that a user has named, that locate nodes, that count level 1 |
//! | `hardware` | records of branches and loads |
//! | `session` | the measurement that is recorded |
//! | `kept_programs` | the session file, and copies of programs that no path leads to afterwards |

mod by_name;
mod chooser;
mod hardware;
mod kept_programs;
pub(crate) mod sample;
mod session;

use crate::topdown::live::{LiveAsk, prepare};
pub use chooser::Note;
pub(crate) use chooser::words;
use kept_programs::{SharedFile, keep};
use pmu::Target;
use pmu::machine::Machine;
use pmu::perf::{Attachment, RunHooks as _};
use pmu::sampling::Sampler;
use sample::Chosen;
pub use sample::SampleAsk;
use serde_json::json;
pub use session::{Recorded, Sampled, record};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tma::Result;
use tma::tables::{Library, Table};

/// A sampler of the program, if anything can be sampled here.
pub(crate) struct Alone<'a> {
    machine: &'a Machine,
    file: SharedFile,
    sampler: Option<Sampler<'a>>,
    target: Target,
    /// The tables of its cores.
    pub tables: Vec<Arc<Table>>,
    /// Limits of the samples.
    pub notes: Vec<Note>,
    programs: Option<PathBuf>,
}

impl<'a> Alone<'a> {
    /// Samples `sample` of the target of `ask` into a session.
    ///
    /// # Errors
    /// The session cannot be written.
    pub fn new(
        machine: &'a Machine,
        library: &Library,
        ask: &LiveAsk,
        sample: &SampleAsk,
        path: &Path,
    ) -> Result<Self> {
        let (cores, blocked) = prepare(machine, library, ask)?;
        let Chosen { plan, notes } =
            sample::choose(machine, &cores, blocked.as_ref(), sample, ask.user_only)?;
        let file = session::begin(machine, library, ask, (path, sample.most), &cores)?;
        let sampler = plan.map(|plan| {
            let sink = session::sink(file.clone(), &plan, words(&notes));
            Sampler::new(machine, plan, sink)
        });
        let tables = cores.into_iter().map(|core| core.table).collect();
        let (target, programs) = (ask.target.clone(), sample.programs.clone());
        Ok(Self { machine, file, sampler, target, tables, notes, programs })
    }

    /// Begins with a process, which has not executed its program yet if it is that of a command.
    ///
    /// # Errors
    /// No event can be opened.
    pub fn attach(&mut self, pid: i32) -> Result<()> {
        let Some(sampler) = &mut self.sampler else { return Ok(()) };
        let is_command = self.target == Target::Command;
        let tasks = match is_command {
            true => vec![pid],
            false => threads(pid),
        };
        let cpus = self.machine.topology.cpus.iter().map(|cpu| cpu.id).collect();
        let target = &self.target;
        sampler.attach(&Attachment {
            target,
            tasks,
            cpus,
            inherit: true,
            enable_on_exec: is_command,
        })?;
        if !is_command {
            sampler.enable();
        }
        Ok(())
    }

    /// Ends it; whether there may be samples, and what must be known of them.
    pub fn finish(mut self) -> (bool, Vec<Note>) {
        let summary = self.sampler.as_mut().map(|sampler| {
            sampler.finish();
            sampler.take_summary()
        });
        session::close(&self.file, json!({}), summary.as_ref());
        let of_sampler = summary.iter().flat_map(|summary| summary.notes.clone());
        self.notes.extend(of_sampler.map(Note::from));
        if let (Some(folder), Some(summary)) = (&self.programs, &summary) {
            self.notes.extend(keep(folder, &summary.elsewhere).into_iter().map(Note::from));
        }
        (summary.is_some(), self.notes)
    }
}

/// The threads of a process (proc(5)).
fn threads(pid: i32) -> Vec<i32> {
    let folder = std::fs::read_dir(format!("/proc/{pid}/task"));
    let number =
        |entry: std::io::Result<std::fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    folder.into_iter().flatten().filter_map(number).collect()
}
