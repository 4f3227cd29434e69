//! The names of the answers, who uses each, and why one is open.

use serde::Serialize;

/// An answer of the self-test; serialised as the field of [`super::Answers`] that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Instructions a cycle.
    Width,
    /// Whether nops share slots.
    NopsFused,
    /// Whether moves share slots.
    MovesFused,
    /// Nops, or moves where nops share slots, a cycle.
    Fillers,
    /// Whether fences slow the code after them.
    FenceSlows,
    /// Whether short loops differ from long ones.
    LoopDiffers,
    /// Whether jump targets need alignment.
    NeedsAlignment,
    /// Distances at which loads wait falsely.
    FalseDistances,
    /// Cost of a mispredicted branch.
    Misprediction,
    /// Cost of a mispredicted branch whose operands are ready.
    ReadyMisprediction,
    /// Cost of a mispredicted indirect jump.
    IndirectMisprediction,
    /// Cost of a mispredicted return.
    ReturnMisprediction,
    /// Cycles that a further load adds to a misprediction.
    MispredictionLoad,
    /// Which of several targets is predicted.
    Targets,
    /// Whether the predictor's history has targets of indirect calls.
    Calls,
    /// How often several targets are mispredicted.
    Several,
    /// Prediction of deep returns.
    Returns,
    /// How often biased random branches are mispredicted.
    Biased,
    /// How many outcomes of branches are remembered.
    Remembered,
    /// Dependent additions of constants a cycle.
    ConstantAdds,
    /// Dependent moves a cycle.
    Moves,
}

/// User of an answer. Where the answer is open, only these widen or drop their results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Consumer {
    /// The sentinel of block measurements, which shows contention.
    Sentinel,
    /// The check of a block against the issue width.
    WidthCheck,
    /// The variants that measure front-end and slot bounds of blocks, also of those that estimates divide.
    FrontEndBounds,
    /// The store-aliasing assumption of blocks.
    StoreAliasing,
    /// Cycles of modelled mispredictions (`count --branches`).
    BranchCycles,
    /// The model of branch predictors (`count --branches`, estimates).
    BranchModel,
    /// Bad Speculation of estimates.
    BadSpeculation,
    /// Which core this is.
    Identification,
}

impl Open {
    /// Whether another attempt, on a quieter machine, may answer it.
    pub fn is_passing(&self) -> bool {
        !matches!(self, Self::NoRule | Self::Predicted | Self::DependsOn { .. })
    }
}

impl Answer {
    /// All of them.
    pub const ALL: [Self; 21] = [
        Self::Width,
        Self::NopsFused,
        Self::MovesFused,
        Self::Fillers,
        Self::FenceSlows,
        Self::LoopDiffers,
        Self::NeedsAlignment,
        Self::FalseDistances,
        Self::Misprediction,
        Self::ReadyMisprediction,
        Self::IndirectMisprediction,
        Self::ReturnMisprediction,
        Self::MispredictionLoad,
        Self::Targets,
        Self::Calls,
        Self::Several,
        Self::Returns,
        Self::Biased,
        Self::Remembered,
        Self::ConstantAdds,
        Self::Moves,
    ];

    /// Users of it, besides `tdtool doctor`, which shows all.
    pub const fn consumers(self) -> &'static [Consumer] {
        use Consumer::{
            BadSpeculation, BranchCycles, BranchModel, FrontEndBounds, Identification, Sentinel,
            StoreAliasing, WidthCheck,
        };
        match self {
            Self::Width => &[Sentinel, WidthCheck, Identification],
            Self::NopsFused | Self::Fillers => &[FrontEndBounds],
            Self::MovesFused => &[WidthCheck],
            // Asked to know a core; nothing depends on them.
            Self::FenceSlows | Self::LoopDiffers | Self::NeedsAlignment => &[],
            Self::FalseDistances => &[StoreAliasing],
            Self::Misprediction
            | Self::ReadyMisprediction
            | Self::IndirectMisprediction
            | Self::ReturnMisprediction
            | Self::MispredictionLoad => &[BranchCycles, BadSpeculation],
            Self::Targets
            | Self::Calls
            | Self::Several
            | Self::Returns
            | Self::Biased
            | Self::Remembered => &[BranchModel],
            Self::ConstantAdds | Self::Moves => &[Identification],
        }
    }
}

/// Signs that something else used the core while it was asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Signs {
    /// Involuntary switches of the process that ran the tests.
    pub switches: Option<u64>,
    /// Share of the machine's time that the hypervisor gave to others.
    pub stolen: Option<f64>,
    /// How far the rounds of one attempt lie above its fastest ones, as a share; of the best mix.
    pub spread: Option<f64>,
}

impl Signs {
    /// Contention takes more of the rounds' time than the clock errs.
    const SPREAD: f64 = 0.04;
    /// Time that the hypervisor's own work takes, or less.
    const STOLEN: f64 = 0.01;

    /// Whether one of them shows that the core was shared.
    pub fn show_sharing(&self) -> bool {
        self.switches.is_some_and(|switches| switches > 0)
            || self.stolen.is_some_and(|share| share > Self::STOLEN)
            || self.spread.is_some_and(|share| share > Self::SPREAD)
    }
}

/// Why an answer is open.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Open {
    /// Its test did not run, or the saved result lacks it.
    NotAsked,
    /// The core was shared: by these signs of the attempts.
    Contended(Signs),
    /// Attempts disagree: the middle half of them lies between these.
    Disagree {
        /// Lower quartile.
        low: f64,
        /// Upper quartile.
        high: f64,
    },
    /// No core does what was measured.
    Impossible {
        /// The measured value.
        found: f64,
        /// The least and most that any core is known to do.
        low: f64,
        /// See `low`.
        high: f64,
    },
    /// Faster than the table states, but not seen again.
    Exceeds {
        /// The measured value.
        found: f64,
        /// The table's value.
        stated: f64,
        /// In how many attempts.
        seen: u32,
    },
    /// Narrower than the table states, without enough evidence that this is the core's own limit.
    Narrower {
        /// The measured value.
        found: f64,
        /// The table's value.
        stated: f64,
        /// In how many attempts.
        seen: u32,
    },
    /// None of the rules that are known, or between two of them.
    NoRule,
    /// The case does not occur here: it is predicted.
    Predicted,
    /// It follows from another answer, which is open.
    DependsOn {
        /// The open answer.
        answer: Answer,
    },
}
