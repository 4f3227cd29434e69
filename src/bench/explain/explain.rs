//! Bounds, verdict and nodes of a measured block, into its report.

use super::explainer::{Explainer, Subject};
use super::model::{Cycles, judge, with_jump};
use super::{nodes, refuted, variants};
use crate::{Measurement, Profiler, Status};
use isa::code::Block;
use tma::Result;

/// How often a block that is unstable is measured again.
const AGAIN: usize = 2;

impl Explainer {
    /// Adds bounds, verdict and nodes to `report`, the report of `block` by `profiler`; with
    /// `what_if`, the list of what lowers its time, too. Nothing is said of a block without a
    /// trusted number.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn explain(
        &mut self,
        profiler: &mut Profiler,
        block: &Block,
        measurement: &mut Measurement,
        what_if: bool,
    ) -> Result<()> {
        let unstable = self.again(profiler, block, measurement)?;
        match (measurement.status, &measurement.throughput) {
            (Status::Ok, Some(_)) => {}
            (_, Some(_)) => {
                nodes::not_explained(measurement, "there is no single number to explain");
                return Ok(());
            }
            _ => return Ok(()),
        }
        // The jump at the end is measured with the block; its bounds are those of the rest.
        let body = variants::body(block);
        let own = match &body {
            Some(body) => Some(profiler.measure(body)?),
            None => None,
        };
        let subject = Subject {
            block: body.as_ref().unwrap_or(block),
            measurement: own.as_ref().unwrap_or(measurement),
        };
        if subject.measurement.status != Status::Ok {
            let why = subject.measurement.reason.as_deref().unwrap_or("no reason").to_owned();
            nodes::not_explained(measurement, &format!("without its jump it is not `ok`: {why}"));
            return Ok(());
        }
        self.watch.begin("bounds".to_owned());
        let mut found = self.evidence(&subject)?;
        let meetings = self.meetings(&subject, &found);
        let mut judgement = judge(&found.evidence);
        if let (Some(_), Some(whole), Some(rest)) =
            (&body, cycles(measurement), cycles(subject.measurement))
        {
            judgement = with_jump(judgement, whole, rest);
        }
        if what_if {
            measurement.what_if = self.what_if(&subject, &found)?;
        }
        measurement.alias_pairs = meetings;
        refuted::mark(&mut found.bounds, found.evidence.time);
        refuted::enter(measurement, &found.bounds, found.evidence.time);
        nodes::enter(measurement, &found, &judgement, body.is_some());
        if let Some(why) = unstable {
            measurement.hierarchy.verdict += &format!("; measured again, since at first {why}");
        }
        Ok(())
    }

    /// Measures a block again that is unstable, which neighbours do, too; if that helps, why it was.
    fn again(
        &mut self,
        profiler: &mut Profiler,
        block: &Block,
        measurement: &mut Measurement,
    ) -> Result<Option<String>> {
        for _ in 0..AGAIN {
            if measurement.status != Status::Unstable || self.watch.is_cancelled() {
                break;
            }
            let next = profiler.measure(block)?;
            if next.status == Status::Ok {
                let first = std::mem::replace(measurement, next);
                return Ok(Some(first.reason.unwrap_or_default()));
            }
        }
        Ok(None)
    }
}

/// The headline of a report.
fn cycles(measurement: &Measurement) -> Option<Cycles> {
    measurement.throughput.as_ref().map(|t| Cycles { best: t.cycles, low: t.low, high: t.high })
}
