//! One window: measured, its samples in memory, made into rows.

use super::ask::WindowsAsk;
use super::binaries::binaries;
use super::cgroups::Cgroups;
use super::functions::{Known, functions};
use super::names::{Names, search};
use super::schedule::own_time;
use super::time::Time;
use super::{host, rows};
use crate::hot::Temporary;
use crate::notes::add_new;
use crate::record::{Note, Recorded, SampleAsk, record, words};
use crate::topdown::{LiveAsk, Update};
use fleet::window::{Host, SCHEMA, Window};
use pmu::Target;
use pmu::machine::Machine;
use profile::hot::by_thread;
use profile::session;
use std::path::Path;
use std::time::{Duration, SystemTime};
use tma::Result;
use tma::tables::Library;

/// How often control groups are looked at while a window is recorded.
const LOOKS: u32 = 4;
/// Shortest and longest time between two looks.
const BETWEEN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// Most bytes of records of a window, which are in memory.
const MOST: u64 = 64 << 20;

/// Records windows.
pub(super) struct Recorder<'a> {
    machine: &'a Machine,
    library: &'a Library,
    ask: LiveAsk,
    sample: Option<SampleAsk>,
    host: Host,
    names: Names,
    /// CPU time until the window before.
    spent: Duration,
}

impl<'a> Recorder<'a> {
    pub fn new(machine: &'a Machine, library: &'a Library, ask: &WindowsAsk) -> Self {
        let mut live = ask.live.clone();
        live.ask.level = live.ask.level.or(Some(rows::LEVEL));
        // At the end of each interval control groups are looked at.
        let between = (ask.length / LOOKS).clamp(BETWEEN.0, BETWEEN.1);
        live.interval = Some(between);
        let sample = ask.sample.clone().map(|sample| SampleAsk {
            per_function: machine.core_pmus().next().is_some(),
            programs: None,
            most: MOST,
            ..sample
        });
        let host = host::this(machine, &ask.labels);
        let spent = Duration::ZERO;
        Self { machine, library, ask: live, sample, host, names: Names::new(), spent }
    }

    /// Records a window, which has these notes, too; the signal that ended it early.
    ///
    /// # Errors
    /// Nothing can be measured.
    pub fn window(&mut self, notes: Vec<String>) -> Result<(Window, Option<i32>)> {
        let file = Temporary::in_memory()?;
        let mut cgroups = Cgroups::default();
        let start = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let recorded = record(
            self.machine,
            self.library,
            &self.ask,
            self.sample.as_ref(),
            file.path(),
            &mut |update| match update {
                Update::Interval(_) => cgroups.look(),
                Update::Runs(_) | Update::Interrupted(_) => {}
            },
        )?;
        let signal = recorded.outcome.interrupted;
        let mut window = self.empty(&recorded, start);
        window.notes.splice(0..0, notes);
        if signal.is_some() {
            window.notes.push("a signal ended the window early".to_owned());
        }
        if recorded.sampled.is_some() && session::has_samples(file.path())? {
            self.add_samples(&mut window, &recorded, file.path(), &mut cgroups)?;
        }
        let spent = own_time();
        window.cost_seconds = Some(spent.saturating_sub(self.spent).as_secs_f64());
        self.spent = spent;
        Ok((window, signal))
    }

    /// A window with all but its samples.
    fn empty(&self, recorded: &Recorded, start: Duration) -> Window {
        let report = &recorded.outcome.report;
        let owner = rows::owner(&self.ask.target);
        let (nodes, of_kind) = rows::nodes(report, &owner);
        let uarch = Some(report.uarch.clone()).filter(|name| !name.is_empty());
        let mut notes = report.notes.clone();
        // Nodes say it.
        let of_samples = recorded.notes.iter().filter(|note| **note != Note::NoPmu).cloned();
        add_new(&mut notes, words(&of_samples.collect::<Vec<_>>()));
        add_new(&mut notes, recorded.losses.clone());
        add_new(&mut notes, recorded.failed.iter().map(ToString::to_string).chain(of_kind));
        Window {
            schema: SCHEMA.to_owned(),
            host: Host { uarch, ..self.host.clone() },
            start_ms: i64::try_from(start.as_millis()).unwrap_or(i64::MAX),
            seconds: report.duration,
            busy_seconds: rows::seconds(report).filter(|_| self.ask.target == Target::System),
            cost_seconds: None,
            lost: recorded.sampled.as_ref().map(|sampled| sampled.summary.lost),
            nodes,
            functions: Vec::new(),
            blocks: Vec::new(),
            counts: rows::counts(report, &owner),
            notes,
        }
    }

    fn add_samples(
        &mut self,
        window: &mut Window,
        recorded: &Recorded,
        path: &Path,
        cgroups: &mut Cgroups,
    ) -> Result<()> {
        let recording = session::open(path, false)?;
        let about = &recording.about;
        let sampled = recorded.sampled.as_ref();
        let elsewhere = sampled.map_or(&[][..], |sampled| &sampled.summary.elsewhere);
        let by = by_thread(&recording, search(elsewhere))?;
        self.names.begin(about, elsewhere);
        let report = &recorded.outcome.report;
        let event = about.events.get(about.main_event()).map(|event| event.name.clone());
        let time = &Time { event: event.unwrap_or_default(), busy: rows::seconds(report) };
        let known = &mut Known { time, cgroups, names: &mut self.names };
        let (functions, notes) = functions(&by, known);
        window.nodes.extend(binaries(&by, report, self.library, time));
        self.names.end();
        window.functions = functions;
        window.lost = window.lost.max(Some(about.lost));
        let all = about.notes.iter().cloned().chain(by.notes).chain(notes);
        // Nodes say it.
        let said = |note: &String| Note::parse(note) == Note::NoPmu;
        add_new(&mut window.notes, all.filter(|note| !said(note)));
        Ok(())
    }
}
