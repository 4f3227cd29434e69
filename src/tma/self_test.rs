//! What a processor said of itself: the answers of a self-test that ran on it.
//!
//! `bench::selftest` asks, when a core is first used; `docs/method/blocks.md` has the questions. An
//! answer that is missing is unknown, never assumed.

use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

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
    /// Whether straight code directly after a fence runs slower than after a fence and a jump.
    pub fence_slows: Option<bool>,
    /// Whether code takes another time in a loop of 48 instructions than in one of 576.
    pub loop_differs: Option<bool>,
    /// Whether code is slower after a jump to an address that is not a multiple of 64.
    pub needs_alignment: Option<bool>,
    /// Bytes by which a store may be above a load of the same base register such that the load
    /// waits falsely, of those tried.
    pub false_distances: Option<Vec<u32>>,
    /// Cycles that a mispredicted branch costs: of random branches behind a short chain.
    pub misprediction: Option<f64>,
    /// The same where the branch's operands were there before the last branch.
    pub ready_misprediction: Option<f64>,
    /// The same of an indirect jump.
    pub indirect_misprediction: Option<f64>,
    /// What each further load adds to these that the branch waits for one after another.
    pub misprediction_load: Option<f64>,
    /// Which target of an indirect jump is predicted.
    pub targets: Option<Targets>,
}

/// How often an indirect jump is mispredicted that takes, at random, one of two targets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Targets {
    /// The rarer one a quarter of the times.
    pub quarter: f64,
    /// The rarer one an eighth of the times.
    pub eighth: f64,
}

/// What a processor predicts where nothing tells which target is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The target that was right most often: with targets of share p and 1 − p it is wrong with the
    /// lesser of both.
    MostFrequent,
    /// The last target: wrong with 2p (1 − p).
    Last,
}

impl Rule {
    /// Shares that are mispredicted of the two questions, a quarter and an eighth: as the model of predictors mispredicts
    /// them (`branches::predictor`, whose tests check it). Ideally the most frequent target is wrong with 25 and 12.5 %, the
    /// last one with 37.5 and 21.9 %; histories of random targets blur both.
    pub fn mispredicts(self) -> Targets {
        match self {
            Self::MostFrequent => Targets { quarter: 0.291, eighth: 0.140 },
            Self::Last => Targets { quarter: 0.358, eighth: 0.186 },
        }
    }
}

impl Targets {
    /// The rule that both shares show; `None` if they do not agree, or lie in the middle between both rules.
    pub fn rule(&self) -> Option<Rule> {
        /// How far from the middle, as a share of the distance between the rules.
        const CLEAR: f64 = 0.1;
        let (most_frequent, last) = (Rule::MostFrequent.mispredicts(), Rule::Last.mispredicts());
        let shown = |share: f64, most_frequent: f64, last: f64| {
            let towards_last = (share - most_frequent) / (last - most_frequent) - 0.5;
            let rule = if towards_last > 0.0 { Rule::Last } else { Rule::MostFrequent };
            (towards_last.abs() >= CLEAR).then_some(rule)
        };
        let quarter = shown(self.quarter, most_frequent.quarter, last.quarter)?;
        let eighth = shown(self.eighth, most_frequent.eighth, last.eighth)?;
        (eighth == quarter).then_some(quarter)
    }
}

/// The self-test of a core: made once, and kept by whoever shares the description of the core.
#[derive(Debug, Default)]
pub struct SelfTest {
    folder: OnceLock<PathBuf>,
    answers: OnceLock<Answers>,
}

impl SelfTest {
    /// The user's cache folder, where results are kept for the next process; nowhere without one.
    pub fn keep_in(&self, folder: &Path) {
        // The first one stays.
        let _ = self.folder.set(folder.to_owned());
    }

    /// The folder to keep results in.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.get().map(PathBuf::as_path)
    }

    /// The answers, once the test ran.
    pub fn answers(&self) -> Option<&Answers> {
        self.answers.get()
    }

    /// The answers, by `ask` if the test did not run yet.
    pub fn answers_or(&self, ask: impl FnOnce() -> Answers) -> &Answers {
        self.answers.get_or_init(ask)
    }
}
