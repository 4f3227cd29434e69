//! A core by its self-test: the answers where they are needed now, their wording, and which of several tables they
//! leave.

use bench::{BlockMeasurer, Options, Pmu};
use std::sync::Arc;
use tma::identity::settle;
use tma::self_test::{Answer, Answers, Open, Signs};
use tma::tables::Library;
use tma::{Core, Result};

/// The answers of this processor's self-test, which is made if it was not.
///
/// # Errors
/// The sandbox cannot be started.
pub(crate) fn answers(core: &Arc<Core>) -> Result<Option<&Answers>> {
    if core.answers().is_none() {
        let pmu = Pmu::Absent(String::new());
        let options = Options { core: core.clone(), pmu, counts: false, ..Options::quick() };
        BlockMeasurer::new(options).self_test()?;
    }
    Ok(core.answers())
}

/// The core by the one table that its self-test leaves of several, where it leaves one; otherwise by the facts in which
/// the tables left agree. A processor whose self-test cannot be made stays as it was.
///
/// # Errors
/// A table cannot be read.
pub fn settled(core: Arc<Core>, library: &Library) -> Result<Arc<Core>> {
    let open = core.identity.as_ref().filter(|found| found.table.is_none() && core.table.is_none());
    let Some(identity) = open.filter(|found| found.candidates.len() > 1) else { return Ok(core) };
    let Some(answers) = answers(&core).ok().flatten() else { return Ok(core) };
    let found = settle(Arc::unwrap_or_clone(identity.clone()), answers.into(), library)?;
    let facts = match &found.table {
        Some(name) => Core::modelled(library, name)?,
        None => Core::in_common(library, &found.candidates)?,
    };
    let Core { table, shared, latencies, ports, .. } = facts;
    let identity = Some(Arc::new(found));
    Ok(Arc::new(Core { table, shared, latencies, ports, identity, ..Arc::unwrap_or_clone(core) }))
}

/// The remedy for an open answer.
pub const AGAIN: &str = "`tdtool doctor --self-test` makes the self-test again";

/// An answer's name.
pub fn name(answer: Answer) -> &'static str {
    match answer {
        Answer::Width => "sustained width",
        Answer::NopsFused => "nop fusion",
        Answer::MovesFused => "move fusion",
        Answer::Fillers => "nops or moves for bounds",
        Answer::FenceSlows => "fences",
        Answer::LoopDiffers => "loops",
        Answer::NeedsAlignment => "alignment",
        Answer::FalseDistances => "false dependences",
        Answer::Misprediction => "cost of a misprediction",
        Answer::ReadyMisprediction => "cost of a misprediction that waits for nothing",
        Answer::IndirectMisprediction => "cost of a mispredicted indirect jump",
        Answer::ReturnMisprediction => "cost of a mispredicted return",
        Answer::MispredictionLoad => "what a load adds to a misprediction",
        Answer::Targets => "which target of an indirect jump is predicted",
        Answer::Calls => "whether targets of indirect calls are remembered",
        Answer::Several => "how often indirect branches of two to eight targets are mispredicted",
        Answer::Returns => "what is predicted of deep returns",
        Answer::Biased => "how often biased random branches are mispredicted",
        Answer::Remembered => "how many outcomes of branches are remembered",
        Answer::ConstantAdds => "dependent additions of a constant",
        Answer::Moves => "dependent moves",
    }
}

/// Why an answer is open, in words.
pub fn reason(why: &Open) -> String {
    match why {
        Open::NotAsked => "its test did not run".to_owned(),
        Open::Contended(signs) => format!("the core was shared during the test: {}", shared(signs)),
        Open::Disagree { low, high } => {
            format!("attempts disagree, from {low:.1} to {high:.1}")
        }
        Open::Impossible { found, low, high } => {
            format!(
                "{found:.1} was measured, and no core does less than {low:.0} or more than {high:.0}"
            )
        }
        Open::Exceeds { found, stated, seen } => format!(
            "{found:.1} was measured in {}, the table states {stated:.0}: it was not seen again",
            times(*seen)
        ),
        Open::Narrower { found, stated, seen } => format!(
            "{found:.1} was measured in {}, the table states {stated:.0}: a shared core seems narrower, too",
            times(*seen)
        ),
        Open::NoRule => "what was measured fits none of the rules that are known".to_owned(),
        Open::Predicted => "there are none: they are predicted".to_owned(),
        Open::DependsOn { answer } => format!("it needs another answer, {}", name(*answer)),
    }
}

fn times(seen: u32) -> String {
    if seen == 1 { "one attempt".to_owned() } else { format!("{seen} attempts") }
}

fn shared(signs: &Signs) -> String {
    let all = [
        signs.switches.filter(|n| *n > 0).map(|n| format!("{n} involuntary context switches")),
        signs.stolen.map(|s| format!("{:.0} % of the time stolen by the hypervisor", 100.0 * s)),
        signs.spread.map(|s| format!("rounds {:.0} % apart", 100.0 * s)),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
