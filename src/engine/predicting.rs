//! The processor's answers on its predictors, for the model of them.

use crate::tested::{AGAIN, reason};
use probe::plan::What;
use report::documents::count::{Count, PredictedReturn, PredictedTarget};
use tma::self_test::{
    Answer, Answers, Below, Biased, Consumer, Remembered, Returns, Rule, Rules, SEVERAL, Sequence,
    Several, SeveralTargets, TargetHistory,
};

/// Branches that were executed, besides conditional jumps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Executed {
    /// Indirect jumps or calls.
    pub targets: bool,
    /// Indirect calls.
    pub calls: bool,
    /// Returns of functions that may call themselves.
    pub returns: bool,
}

/// Adds costs and rules to a document: what they mean for its numbers as a note, each that concerns what was executed as a
/// line of the model; the rules that the model takes.
pub fn enter(document: &mut Count, answers: Option<&Answers>, executed: Executed) -> Rules {
    let targets = answers.and_then(|answers| answers.targets);
    let shown = targets.and_then(|targets| targets.rule());
    let rules = answers.map(Answers::rules).unwrap_or_default();
    let known = |cost: fn(&Answers) -> Option<f64>| answers.and_then(cost);
    document.misprediction_cycles = known(|answers| answers.misprediction);
    document.ready_misprediction_cycles = known(|answers| answers.ready_misprediction);
    document.indirect_misprediction_cycles = known(|answers| answers.indirect_misprediction);
    document.return_misprediction_cycles = known(|answers| answers.return_misprediction);
    document.load_misprediction_cycles = known(|answers| answers.misprediction_load);
    document.predicted_target = Some(PredictedTarget {
        rule: rules.targets.unwrap_or_default(),
        measured: shown.is_some(),
        quarter: targets.map(|targets| targets.quarter),
        eighth: targets.map(|targets| targets.eighth),
    });
    document.notes.push(summary(answers, executed));
    document.model.push(match document.misprediction_cycles {
        Some(cycles) => costs(document, cycles, executed),
        None => format!(
            "what a misprediction costs is not known: {}",
            why(answers, Answer::Misprediction)
        ),
    });
    let shares = targets.map(|targets| (targets.quarter, targets.eighth));
    if executed.targets {
        document.model.push(targets_of(shown, shares, &why(answers, Answer::Targets)));
    }
    if executed.calls {
        document.model.push(calls(rules.calls, &why(answers, Answer::Calls)));
    }
    if executed.targets {
        document
            .model
            .extend(several(&rules.several).map(|found| format!("by the self-test, {found}")));
    }
    document.model.push(rules.biased.as_ref().and_then(biased).unwrap_or_else(|| {
        format!(
            "how often random branches that go one way more often are mispredicted is not known: {}",
            why(answers, Answer::Biased)
        )
    }));
    let of_sequences = answers.and_then(|answers| answers.remembered.as_ref());
    document.model.push(of_sequences.and_then(remembered).unwrap_or_else(|| {
        format!(
            "how many outcomes of branches this processor remembers is not known ({}): ranges are from fewer than on any \
             core to more",
            why(answers, Answer::Remembered)
        )
    }));
    if executed.returns && !knows_returns(answers) {
        document.model.push(format!(
            "which return is predicted where calls nest deeper than the predictor remembers is not known: {}",
            why(answers, Answer::Returns)
        ));
    }
    document.predicted_return =
        Some(predicted_return(rules.returns, answers.and_then(|answers| answers.returns)));
    rules
}

/// The cost of a misprediction, by what was executed.
fn costs(of: &Count, cycles: f64, executed: Executed) -> String {
    let cost = |cycles: Option<f64>| cycles.map_or("?".to_owned(), |cycles| format!("{cycles:.0}"));
    let ready = cost(of.ready_misprediction_cycles);
    let mut all = vec![format!("{ready} where the branch waits for no load of its block")];
    if executed.returns {
        all.push(match (of.return_misprediction_cycles, of.ready_misprediction_cycles) {
            (None, Some(_)) => format!("{ready} assumed of a return (not measured)"),
            (own, _) => format!("{} of a return", cost(own)),
        });
    }
    let mut second = "";
    if executed.targets {
        let indirect = cost(of.indirect_misprediction_cycles);
        all.push(format!("{indirect} of an indirect jump or call"));
        second = " (of a jump or call, the second)";
    }
    let load = cost(of.load_misprediction_cycles);
    all.push(format!("{load} more for each load after the first{second} that it waits for"));
    format!("a misprediction costs {cycles:.0} cycles by the self-test, {}", all.join(", "))
}

/// Whether the self-test tells which return is predicted where calls nest too deep.
fn knows_returns(answers: Option<&Answers>) -> bool {
    answers.and_then(|answers| answers.returns).and_then(|returns| returns.rule()).is_some()
}

/// Consequences of the self-test's answers for the numbers, in one line.
fn summary(answers: Option<&Answers>, executed: Executed) -> String {
    let is_known = |of: fn(&Answers) -> bool| answers.is_some_and(of);
    let properties = [
        (executed.targets, is_known(|all| all.targets.and_then(|one| one.rule()).is_some())),
        (executed.calls, is_known(|all| all.rules().calls != TargetHistory::Unknown)),
        (executed.targets, is_known(|all| all.rules().jumps != TargetHistory::Unknown)),
        (executed.returns, knows_returns(answers)),
        (true, is_known(|all| all.biased.as_ref().and_then(biased).is_some())),
        (true, is_known(|all| all.remembered.as_ref().and_then(remembered).is_some())),
    ];
    let concerned = properties.iter().filter(|(concerns, _)| *concerns);
    let (open, of) = (concerned.clone().filter(|(_, known)| !known).count(), concerned.count());
    let mut text = "mispredictions are modelled, not counted".to_owned();
    if open > 0 {
        text += &format!(
            "; {open} of {of} properties of this processor's predictors are not known: numbers rest on assumptions \
             there, and intervals are wider"
        );
    }
    if answers.is_none_or(|answers| answers.misprediction.is_none()) {
        text += "; cycles are not known";
    }
    let again = if may_answer(answers) { format!("; {AGAIN}") } else { String::new() };
    format!("{text} (-v: what the self-test found{again})")
}

/// Whether another self-test may answer what is open of mispredictions.
fn may_answer(answers: Option<&Answers>) -> bool {
    let is_asked = |answer: &Answer| {
        let is_one = |of: &Consumer| matches!(of, Consumer::BranchCycles | Consumer::BranchModel);
        answer.consumers().iter().any(is_one)
    };
    answers.is_none_or(|answers| {
        answers.open.iter().any(|(answer, why)| is_asked(answer) && why.is_passing())
    })
}

/// The row of returns.
fn predicted_return(taken: Below, shown: Option<Returns>) -> PredictedReturn {
    PredictedReturn {
        rule: taken,
        measured: shown.is_some_and(|returns| returns.rule().is_some()),
        alternate: shown.map(|returns| returns.alternate),
        fives: shown.map(|returns| returns.fives),
    }
}

/// Cycles of one misprediction, by what the branch waits for.
pub struct Costs {
    ready: Option<f64>,
    waiting: Option<f64>,
    indirect: Option<f64>,
    returns: Option<f64>,
    load: Option<f64>,
}

impl Costs {
    /// The kinds of branches in a document.
    pub fn of(document: &Count) -> Self {
        Self {
            ready: document.ready_misprediction_cycles,
            waiting: document.misprediction_cycles,
            indirect: document.indirect_misprediction_cycles,
            returns: document.return_misprediction_cycles,
            load: document.load_misprediction_cycles,
        }
    }

    /// The cost for a branch that waits for this many loads of its block, one after another. The self-test's random
    /// branch waits as long as for one load, its jump as for two: both wait for a forwarded load, a multiplication and
    /// three or four short instructions, `random.rs` of `bench::selftest`.
    pub fn one(&self, what: &What, loads: u32) -> Option<f64> {
        let (cost, included) = match (what, loads) {
            (What::Target, _) => (self.indirect?, 2),
            (What::Entered, _) => (self.returns.or(self.ready).or(self.waiting)?, 0),
            (What::Outcome, 1..) => (self.waiting?, 1),
            _ => (self.ready.or(self.waiting)?, 0),
        };
        let further = match included {
            0 => 0,
            _ => loads.saturating_sub(included),
        };
        Some(cost + f64::from(further) * self.load.unwrap_or(0.0))
    }
}

/// Costs of other mispredictions than those of random branches, as part of a list.
pub fn others(answers: &Answers) -> Option<String> {
    let (ready, cost) = (answers.ready_misprediction?, answers.indirect_misprediction?);
    let rule = match answers.targets?.rule() {
        Some(Rule::Last) => "the last one is predicted",
        Some(Rule::MostFrequent) => "the most frequent one is predicted",
        None => "neither the last nor the most frequent one is predicted",
    };
    Some(format!(
        "{ready:.0} where nothing is waited for, {cost:.0} of an indirect jump, of whose targets {rule}"
    ))
}

/// Why the self-test has no such answer.
fn why(answers: Option<&Answers>, answer: Answer) -> String {
    match answers.and_then(|answers| answers.open.get(&answer)) {
        Some(open) if open.is_passing() => format!("{}; {AGAIN}", reason(open)),
        Some(open) => reason(open),
        None => format!("the self-test has no answer yet; {AGAIN}"),
    }
}

/// Whether functions that are called in turn are predicted.
fn calls(shown: TargetHistory, open: &str) -> String {
    match shown {
        TargetHistory::With => in_turn(shown).to_owned(),
        TargetHistory::Low => format!("{}, as in the self-test", in_turn(shown)),
        TargetHistory::Unknown => format!("{}: ranges have both; {open}", in_turn(shown)),
    }
}

/// Whether functions that are called in turn are predicted, as part of a list.
pub fn in_turn(shown: TargetHistory) -> &'static str {
    match shown {
        TargetHistory::With => "indirect calls of several functions in turn are predicted",
        TargetHistory::Low => {
            "indirect calls of several functions in turn, 16 bytes apart, are mispredicted: only other branches and their \
             returns tell which is next"
        }
        TargetHistory::Unknown => {
            "whether indirect calls of several functions in turn are predicted is not known"
        }
    }
}

/// How often indirect branches with two to eight targets are mispredicted.
pub fn several(of: &SeveralTargets) -> Option<String> {
    let rates = |rates: [Option<f64>; 3], order: &str| {
        let one = |(targets, rate): (u32, Option<f64>)| {
            Some(format!("{:.0} % of {targets}", 100.0 * rate?))
        };
        let all: Vec<String> = SEVERAL.into_iter().zip(rates).filter_map(one).collect();
        (!all.is_empty()).then(|| format!("{order} {}", all.join(", ")))
    };
    let kind = |own: &Several, name: &str| {
        let all = [rates(own.in_turn, "in turn"), rates(own.random, "at random")];
        let all: Vec<String> = all.into_iter().flatten().collect();
        (!all.is_empty()).then(|| format!("{name} {}", all.join(", ")))
    };
    let all = [
        kind(&of.calls, "calls of several functions"),
        kind(&of.jumps, "jumps to several targets"),
    ];
    let all: Vec<String> = all.into_iter().flatten().collect();
    (!all.is_empty()).then(|| format!("mispredicted are {}", all.join("; ")))
}

/// How long a random sequence may be that is predicted once it was repeated.
pub fn remembered(remembered: &Remembered) -> Option<String> {
    let rate = |one: &Sequence| {
        let (low, high) = (100.0 * one.low, 100.0 * one.high);
        format!("{} outcomes ({low:.1}-{high:.1} % mispredicted)", one.outcomes)
    };
    let (predicted, not) = remembered.limit();
    let parts = [predicted.map(rate), not.map(|one| format!("not one of {}", rate(one)))];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty())
        .then(|| format!("a repeating random sequence is predicted: {}", parts.join(", ")))
}

/// How often the processor mispredicts random branches, which the model takes over.
fn biased(biased: &Biased) -> Option<String> {
    let rate = biased.alone(8)?;
    Some(format!(
        "random branches that go one way more often are mispredicted as often as in the self-test, of 1 in 8 {:.1} % of \
         the times",
        100.0 * rate
    ))
}

/// Which rule of several targets, and why.
fn targets_of(shown: Option<Rule>, shares: Option<(f64, f64)>, open: &str) -> String {
    let Some((quarter, eighth)) = shares else {
        return format!(
            "of several targets the most frequent one is taken to be predicted, or the last one; what this \
             processor does is not known: {open}"
        );
    };
    let [last, most_frequent] = [Rule::Last, Rule::MostFrequent].map(Rule::mispredicts);
    let why = format!(
        "jumps that take the rarer of two random targets 25 and 12.5 % of the times are mispredicted {:.0} and \
         {:.0} % of the times in the self-test; the model mispredicts {:.0} and {:.0} % by the last target, {:.0} and \
         {:.0} % by the most frequent one",
        100.0 * quarter,
        100.0 * eighth,
        100.0 * last.quarter,
        100.0 * last.eighth,
        100.0 * most_frequent.quarter,
        100.0 * most_frequent.eighth
    );
    match shown {
        Some(Rule::Last) => format!("of several targets the last one is predicted: {why}"),
        Some(Rule::MostFrequent) => {
            format!("of several targets the most frequent one is predicted: {why}")
        }
        None => format!(
            "of several targets the most frequent one is taken to be predicted, or the last one, which is not decided: {why}"
        ),
    }
}

#[cfg(test)]
#[path = "predicting_tests.rs"]
mod tests;
