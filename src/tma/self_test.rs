//! What a processor said of itself: the answers of a self-test that ran on it.
//!
//! `bench::selftest` asks, when a core is first used; `docs/method/blocks.md` has the questions. An
//! answer that is missing is unknown, never assumed.

mod predictors;

pub use predictors::{Below, Returns, Rule, Rules, Targets};

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
    /// The same of a return below the stack of return addresses; where these are mispredicted.
    pub return_misprediction: Option<f64>,
    /// What each further load adds to these that the branch waits for one after another.
    pub misprediction_load: Option<f64>,
    /// Which target of an indirect jump is predicted.
    pub targets: Option<Targets>,
    /// What is predicted of returns that the stack of return addresses has no room for.
    pub returns: Option<Returns>,
}

impl Answers {
    /// What the model of predictors takes over; what the processor does not show is as most do.
    pub fn rules(&self) -> Rules {
        Rules {
            targets: self.targets.and_then(|targets| targets.rule()).unwrap_or_default(),
            returns: self.returns.and_then(|returns| returns.rule()).unwrap_or_default(),
        }
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
