//! Measurements → the document: one function for live and for replayed evidence, so that both say the same.

use super::evidence::Context;
use super::known::{Known, Measured, Recorded};
use super::listing::Listed;
use estimate::Interval;
use report::documents::estimate::Estimate;

/// The limits of counts of a process.
const WINDOWS: &str = "counts are of windows in which probes slow the process: without them entries may be up to \
                       40 % more, and still more where others used the processor; code is measured in isolation with made-up values";

/// Enters all that follows from it, with notes on the numbers. `code` lists the instructions of a function.
pub(super) fn evaluate<'c, 'a: 'c>(
    known: &Known<'a>,
    document: &mut Estimate,
    of: Measured<'c, '_>,
    code: Listed<'_>,
) -> Context<'c> {
    let context = known.enter(document, of, code);
    document.notes.extend(notes(&context, document.deterministic));
    document.assumed.extend(assumed(&context, of.recorded));
    if known.ask.process.is_some() {
        document.notes.push(WINDOWS.to_owned());
    }
    context
}

/// Limits of the numbers.
fn notes(context: &Context, deterministic: Option<bool>) -> Vec<String> {
    let ghz = context.shared.clock.ghz;
    let clock = context.shared.clock.reason.as_ref().map(|why| {
        format!(
            "the core clock is not known, so shares of cycles are wide: taken to be the {ghz:.2} GHz of the \
             time-stamp counter, or up to twice that: {why}"
        )
    });
    let differs = (deterministic == Some(false)).then(|| {
        "the runs differ: some entered blocks more often than others; shares are averages over all of them"
            .to_owned()
    });
    clock.into_iter().chain(differs).collect()
}

/// Assumptions.
fn assumed(context: &Context, Recorded { recorded, is_explained, .. }: &Recorded) -> Vec<String> {
    let mut all = Vec::new();
    if context.shared.clock.reason.is_none() {
        let ghz = context.shared.clock.ghz;
        all.push(format!("core clock {ghz:.2} GHz, as an add chain showed after the sampled run"));
    }
    if context.shared.width.error() > 0.0 {
        let Interval { value, low, high } = context.shared.width;
        let why = match context.shared.core.stated_width() {
            Some(stated) => {
                format!(
                    "its table states {stated}, and no attempt of its self-test did more than {low:.0}"
                )
            }
            None => "no table describes it, and its self-test saw contention only".to_owned(),
        };
        all.push(format!(
            "the issue width of this core is not known ({why}): {value:.0} a cycle, {low:.0} to {high:.0}; `tdtool doctor --self-test` \
             measures it again"
        ));
    }
    if context.shared.ports.is_none() {
        all.push(
            "no table has the µops of this core's instructions: each is taken for one slot, a comparison and its branch for one, and up to 20 % more"
                .to_owned(),
        );
    }
    if let (true, Some(cycles)) = (recorded.branches, context.penalty()) {
        all.push(format!(
            "a misprediction costs {cycles:.0} cycles by the self-test where its branch waits for a load, and as \
             `tdtool count --branches` shows for others"
        ));
    }
    if *is_explained {
        all.push("loads were not recorded: nothing is left that they could explain".to_owned());
    }
    all
}
