//! Shares of the samples → time and cycles.

use bench::{BlockMeasurer, Options};
use pmu::perf::tsc_hz_here;
use profile::event::EventKind;
use profile::hot::Profile;
use report::documents::Report;
use tma::Result;

/// Seconds and cycles of the sampled time.
pub(super) struct Clock {
    /// CPU time of the samples, in a run or a second.
    pub seconds: Option<f64>,
    /// Cycles, where samples are of them.
    counted: Option<f64>,
    /// Hertz, estimated.
    hertz: Option<f64>,
}

impl Clock {
    /// From the samples of a report.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn of(report: &Report, profile: &Profile) -> Result<Self> {
        let per = if report.command.is_some() || report.exit.is_some() {
            1.0
        } else {
            report.duration.unwrap_or(1.0)
        };
        match EventKind::of(&profile.event) {
            EventKind::Cycles | EventKind::SomeCycles => {
                let counted = Some(profile.weight() / per);
                return Ok(Self { seconds: None, counted, hertz: None });
            }
            EventKind::Clock | EventKind::Other => {
                return Ok(Self { seconds: None, counted: None, hertz: None });
            }
            EventKind::Time => {}
        }
        let clock = report.software.get("task_clock_ms").copied().flatten();
        let ratio = BlockMeasurer::new(Options::default()).cycles_per_tick()?;
        let hertz = ratio.zip(tsc_hz_here()).map(|(ratio, hertz)| ratio * hertz);
        Ok(Self { seconds: clock.map(|ms| ms / 1e3 / per), counted: None, hertz })
    }

    /// Cycles of the samples, in a run or a second.
    pub fn cycles(&self) -> Option<f64> {
        self.counted.or(self.seconds.zip(self.hertz).map(|(s, h)| s * h))
    }

    /// The limits of the cycles.
    pub fn note(&self) -> Option<String> {
        self.hertz.map(|hertz| {
            format!(
                "cycles per entry are an estimate: time by samples at {:.2} GHz, the core clock that \
                 the block profiler's add chain showed afterwards",
                hertz / 1e9
            )
        })
    }
}
