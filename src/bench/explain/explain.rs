//! Bounds, verdict and nodes of a measured block, into its report.

use super::explainer::{Explainer, Subject};
use super::model::{Cycles, judge, with_jump};
use super::{nodes, refuted, variants};
use crate::{Profiler, Report, Status};
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
        report: &mut Report,
        what_if: bool,
    ) -> Result<()> {
        let unstable = self.again(profiler, block, report)?;
        match (report.status, &report.throughput) {
            (Status::Ok, Some(_)) => {}
            (_, Some(_)) => {
                nodes::not_explained(report, "there is no single number to explain");
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
            report: own.as_ref().unwrap_or(report),
        };
        if subject.report.status != Status::Ok {
            let why = subject.report.reason.as_deref().unwrap_or("no reason").to_owned();
            nodes::not_explained(report, &format!("without its jump it is not `ok`: {why}"));
            return Ok(());
        }
        self.watch.begin("bounds".to_owned());
        let mut found = self.evidence(&subject)?;
        let meetings = self.meetings(&subject, &found);
        let mut judgement = judge(&found.evidence);
        if let (Some(_), Some(whole), Some(rest)) = (&body, cycles(report), cycles(subject.report))
        {
            judgement = with_jump(judgement, whole, rest);
        }
        if what_if {
            report.what_if = self.what_if(&subject, &found)?;
        }
        report.meetings = meetings;
        refuted::mark(&mut found.bounds, found.evidence.time);
        refuted::enter(report, &found.bounds, found.evidence.time);
        nodes::enter(report, &found, &judgement, body.is_some());
        if let Some(why) = unstable {
            report.hierarchy.verdict += &format!("; measured again, since at first {why}");
        }
        Ok(())
    }

    /// Measures a block again that is unstable, which neighbours do, too; if that helps, why it was.
    fn again(
        &mut self,
        profiler: &mut Profiler,
        block: &Block,
        report: &mut Report,
    ) -> Result<Option<String>> {
        for _ in 0..AGAIN {
            if report.status != Status::Unstable || self.watch.is_cancelled() {
                break;
            }
            let next = profiler.measure(block)?;
            if next.status == Status::Ok {
                let first = std::mem::replace(report, next);
                return Ok(Some(first.reason.unwrap_or_default()));
            }
        }
        Ok(None)
    }
}

/// The headline of a report.
fn cycles(report: &Report) -> Option<Cycles> {
    report.throughput.as_ref().map(|t| Cycles { best: t.cycles, low: t.low, high: t.high })
}
