//! Continuous profiling: windows of counts and samples, aggregated before they are written to a ring.
//!
//! | file | concern |
//! |---|---|
//! | `ask` | a request for windows, and what comes of it |
//! | `schedule` | when windows begin; the budget of CPU time that thins them |
//! | `window` | one window: measured, its samples in memory, made into rows |
//! | `rows` | a report → nodes and counts |
//! | `functions` | samples → functions, by binary, control group and command |
//! | `binaries` | level 1 of the binaries with most samples |
//! | `time` | what samples tell of time |
//! | `names` | functions of code, kept from window to window |
//! | `cgroups` | control groups of processes, read while they run |
//! | `host` | the host and its processor |

mod ask;
mod binaries;
mod cgroups;
mod functions;
mod host;
mod names;
mod rows;
mod schedule;
mod time;
mod window;

use crate::one_run::OneRun;
use crate::processes::has_ended;
pub use ask::{Ended, Event, Lost, WindowsAsk};
pub use binaries::binaries;
use fleet::ring::Ring;
use pmu::Target;
use pmu::machine::Machine;
use pmu::perf::{HeldSignals, Signals};
use schedule::{Schedule, own_time};
use std::fmt;
use std::time::Duration;
pub use time::Time;
use tma::Result;
use tma::tables::Library;
use tma::text::several;
use window::Recorder;

/// Records windows until a signal comes or the measured process ends.
///
/// # Errors
/// The ring cannot be opened, or the first window cannot be measured. Later ones are lost, and recording goes on.
pub fn windows(
    machine: &Machine,
    library: &Library,
    ask: &WindowsAsk,
    update: &mut dyn FnMut(Event),
) -> Result<Ended> {
    let mut ring = Ring::open(&ask.ring, ask.most)?;
    let mut ask = ask.clone();
    ask.live.duration = Some(ask.length);
    let run = OneRun::start(&mut ask.live)?;
    // A command's process has them held.
    let held = if run.is_none() { Some(HeldSignals::start()?) } else { None };
    let recorder = Recorder::new(machine, library, &ask);
    let mut all = Loop {
        recorder,
        schedule: Schedule::new(ask.every, ask.budget),
        ended: Ended::default(),
        since: Since::default(),
        is_told: false,
        update,
    };
    let outcome = all.run(&mut ring, &run, &ask.live.target);
    let mut ended = all.ended;
    (ended.spent, ended.wall) = (own_time(), all.schedule.elapsed());
    let (exit, late) = run.map_or((None, None), OneRun::end);
    ended.exit = exit;
    let late = late.or_else(|| held.and_then(HeldSignals::end));
    ended.signal = ended.signal.or(late);
    outcome.map(|()| ended)
}

/// What has happened since the last window that was written.
#[derive(Default)]
struct Since {
    skipped: u64,
    is_late: u64,
    lost: u64,
    why: Option<Lost>,
}

impl Since {
    /// Notes for the next window.
    fn notes(&self) -> Vec<String> {
        let of = |count: u64, why: &dyn fmt::Display| {
            (count > 0).then(|| format!("{} before this one: {why}", several(count, "window")))
        };
        let skipped = of(self.skipped, &"skipped, to stay within the budget of CPU time");
        let late = of(self.is_late, &"skipped, as the one before took longer than --every");
        let lost = self.why.as_ref().and_then(|why| of(self.lost, &format!("lost, as {why}")));
        [skipped, late, lost].into_iter().flatten().collect()
    }
}

struct Loop<'a> {
    recorder: Recorder<'a>,
    schedule: Schedule,
    ended: Ended,
    since: Since,
    /// Whether the user knows that windows are skipped.
    is_told: bool,
    update: &'a mut dyn FnMut(Event),
}

impl Loop<'_> {
    fn run(&mut self, ring: &mut Ring, run: &Option<OneRun>, target: &Target) -> Result<()> {
        let is_over = || match (run, target) {
            (Some(run), _) => run.has_ended(),
            (None, Target::Process(id) | Target::Thread(id)) => has_ended(*id),
            _ => false,
        };
        loop {
            self.ended.signal = self.ended.signal.or(wait(self.schedule.until_next())?);
            if self.ended.signal.is_some() || is_over() {
                return Ok(());
            }
            if !self.schedule.allows(own_time()) {
                self.skip();
                continue;
            }
            match self.recorder.window(self.since.notes()) {
                Ok((window, signal)) => {
                    match ring.add(&window) {
                        Ok(_) => self.written(),
                        Err(dropped) => self.lose(Lost::Dropped(dropped)),
                    }
                    self.ended.signal = signal;
                }
                Err(_) if is_over() => {}
                Err(error) if self.ended.written + self.ended.lost == 0 => return Err(error),
                Err(error) => self.lose(Lost::Unmeasured(error)),
            }
            let late = self.schedule.ended();
            self.since.is_late += late;
            self.ended.skipped += late;
        }
    }

    /// Leaves a window out.
    fn skip(&mut self) {
        if !std::mem::replace(&mut self.is_told, true) {
            let (spent, wall) = (own_time(), self.schedule.elapsed());
            (self.update)(Event::Thinned { spent, wall });
        }
        self.since.skipped += 1;
        self.ended.skipped += 1;
        self.schedule.skip();
    }

    fn written(&mut self) {
        self.ended.written += 1;
        self.since = Since::default();
    }

    fn lose(&mut self, why: Lost) {
        if self.since.lost == 0 {
            (self.update)(Event::Lost(why.clone()));
        }
        self.since.lost += 1;
        self.since.why = Some(why);
        self.ended.lost += 1;
    }
}

/// Waits for this time; the signal that ended it early.
fn wait(time: Duration) -> Result<Option<i32>> {
    let signals = Signals::catch()?;
    Ok(signals.wait(time).then(|| signals.next()).flatten().map(|(signal, _)| signal))
}
