//! Answers of a self-test that ran on the processor.
//!
//! `bench::selftest` asks, when a core is first used; `docs/method/blocks.md` has the questions. An
//! answer that is missing is unknown, never assumed, and says why: each is known or open without the others.

mod open;
mod predictors;
mod targets;

use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub use open::{Answer, Consumer, Open, Signs};
pub use predictors::{
    Below, Biased, FIRST_MODELLED, LENGTHS, MODELLED, MODELLED_REPEATING, ONE_IN, Rate, Remembered,
    Returns, Room, Rules, Sequence,
};
pub use targets::{Calls, Rule, SEVERAL, Several, SeveralTargets, TargetHistory, Targets};

/// The answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Answers {
    /// Unfused single-µop instructions a cycle, in the best of several mixes.
    pub width: Option<f64>,
    /// The name of that mix.
    pub mix: Option<String>,
    /// Whether nops share the slot of another instruction.
    pub nops_fused: Option<bool>,
    /// Whether a move between registers shares the slot of an instruction after it that changes the
    /// register moved to.
    pub moves_fused: Option<bool>,
    /// What replaces instructions where front end and slots are measured, a cycle: nops, or moves where nops share slots.
    pub fillers: Option<f64>,
    /// Whether straight code directly after a fence runs slower than after a fence and a jump.
    pub fence_slows: Option<bool>,
    /// Whether code takes another time in a loop of 48 instructions than in one of 576.
    pub loop_differs: Option<bool>,
    /// Whether code is slower after a jump to an address that is not a multiple of 64.
    pub needs_alignment: Option<bool>,
    /// Bytes by which a store may be above a load of the same base register such that the load falsely depends on it,
    /// of those tested.
    pub false_distances: Option<Vec<u32>>,
    /// Cycles that a mispredicted branch costs: random branches after a short dependency chain.
    pub misprediction: Option<f64>,
    /// Cycles that one costs whose operands were ready before the last branch.
    pub ready_misprediction: Option<f64>,
    /// Cycles that a mispredicted indirect jump costs.
    pub indirect_misprediction: Option<f64>,
    /// Cycles that a return below the return stack costs; where these are mispredicted.
    pub return_misprediction: Option<f64>,
    /// Cycles added by each further load in a chain that the branch depends on.
    pub misprediction_load: Option<f64>,
    /// Which target of an indirect jump is predicted.
    pub targets: Option<Targets>,
    /// How often calls alternating between two functions are mispredicted.
    pub calls: Option<Calls>,
    /// How often indirect branches with two to eight targets are mispredicted.
    pub several: Option<SeveralTargets>,
    /// Prediction of returns that exceed the return stack.
    pub returns: Option<Returns>,
    /// How often random branches are mispredicted that go one way more often.
    pub biased: Option<Biased>,
    /// How often repeating random sequences are mispredicted.
    pub remembered: Option<Remembered>,
    /// Additions of a constant a cycle, each to the result of the last: more than one where they are eliminated.
    pub constant_adds: Option<f64>,
    /// Moves between registers a cycle, each of the last one's result: more than one where they are eliminated.
    pub moves: Option<f64>,
    /// Why the others are open.
    pub open: BTreeMap<Answer, Open>,
    /// Standard errors of numbers, in their units, where several attempts show one.
    pub errors: BTreeMap<Answer, f64>,
    /// How the width was seen.
    pub seen: Option<Seen>,
}

/// How the width was seen, since a narrow one may be that of a shared core.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Seen {
    /// Attempts used.
    pub attempts: u32,
    /// Attempts within 2 % of the best.
    pub best: u32,
    /// Processors tested; 0 where that is not known.
    pub cpus: u32,
    /// Instructions a cycle in the best attempt that is not alone.
    pub fastest: f64,
    /// Instructions a cycle in the slowest attempt.
    pub slowest: f64,
    /// Signs of a shared core: the most of any attempt.
    pub signs: Signs,
}

/// Attempts after which a rate below the table's width can be the core's own limit.
const REPEATED: u32 = 16;
/// The least share of the table's width that can be: a busy sibling thread takes more, about half.
const ALONE: f64 = 0.7;

impl Seen {
    /// Whether the fastest is what the core itself can, though less than the `stated` width: three in four of many
    /// attempts came to it. Others that used the core would not have left each of them the same.
    pub fn is_own_limit(&self, stated: f64) -> bool {
        let (best, attempts) = (u64::from(self.best), u64::from(self.attempts));
        self.best >= REPEATED && 4 * best >= 3 * attempts && self.fastest >= ALONE * stated
    }
}

impl Answers {
    /// Rules for the model of predictors; those that the processor does not show are as on most.
    pub fn rules(&self) -> Rules {
        let several = self.several.unwrap_or_default();
        let in_turn = |of: &Several| of.in_turn.into_iter().flatten();
        let two = self.calls.map(|calls| calls.in_turn);
        Rules {
            targets: self.targets.and_then(|targets| targets.rule()),
            calls: TargetHistory::of(two.into_iter().chain(in_turn(&several.calls))),
            jumps: TargetHistory::of(in_turn(&several.jumps)),
            apart: self.calls.and_then(|calls| calls.tells_apart()),
            alike: false,
            several,
            returns: self.returns.and_then(|returns| returns.rule()).unwrap_or_default(),
            biased: self.biased.clone(),
            room: self.remembered.as_ref().map(Remembered::room).unwrap_or_default(),
        }
    }
}

/// The self-test of a core: made once, and shared by all who share the description of the core.
#[derive(Debug, Default)]
pub struct SelfTest {
    folder: OnceLock<PathBuf>,
    given: OnceLock<PathBuf>,
    again: OnceLock<()>,
    answers: OnceLock<Answers>,
    watch: OnceLock<fn(Option<u32>)>,
}

impl SelfTest {
    /// Sets the user's cache folder, where results are saved for the next process; without one they are not saved.
    pub fn keep_in(&self, folder: &Path) {
        // The first one stays.
        let _ = self.folder.set(folder.to_owned());
    }

    /// The folder to save results in.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.get().map(PathBuf::as_path)
    }

    /// Takes the results from this file, of whatever processor, instead of measuring.
    pub fn take_from(&self, file: &Path) {
        let _ = self.given.set(file.to_owned());
    }

    /// The file to take results from.
    pub fn given(&self) -> Option<&Path> {
        self.given.get().map(PathBuf::as_path)
    }

    /// Has the test made again, although its result was saved.
    pub fn make_again(&self) {
        let _ = self.again.set(());
    }

    /// Whether it is to be made again.
    pub fn is_made_again(&self) -> bool {
        self.again.get().is_some()
    }

    /// Has `show` called with the number of each attempt before it is made, and with none after the last one.
    pub fn watch(&self, show: fn(Option<u32>)) {
        let _ = self.watch.set(show);
    }

    /// An attempt begins; `None`: there are no more.
    pub fn show(&self, attempt: Option<u32>) {
        if let Some(show) = self.watch.get() {
            show(attempt);
        }
    }

    /// The answers, once the test ran.
    pub fn answers(&self) -> Option<&Answers> {
        self.answers.get()
    }

    /// The answers, by `ask` if the test did not run yet: once, even for concurrent callers.
    pub fn answers_or(&self, ask: impl FnOnce() -> Answers) -> &Answers {
        self.answers.get_or_init(ask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_s_own_limit_is_what_three_in_four_of_many_attempts_come_to() {
        let of = |fastest, best, attempts| {
            Seen { fastest, best, attempts, ..Seen::default() }.is_own_limit(8.0)
        };
        assert!(of(7.0, 16, 16) && of(7.0, 16, 21) && of(7.0, u32::MAX, u32::MAX));
        assert!(!of(7.0, 15, 15), "too few attempts");
        assert!(!of(7.0, 16, 22), "others did less");
        assert!(!of(4.2, 24, 24), "a sibling thread that is always busy");
    }
}
