//! The verdict: which bound explains a block's time.
//!
//! A max-of-bounds model. Every bound is a time that the block cannot beat, each for a reason of
//! its own; the largest that comes up to the measured time explains it. Bounds overlap, so they
//! are compared with the time and never added up.

use crate::Throughput;

/// A time in core cycles per iteration, with its error.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cycles {
    /// Best estimate.
    pub best: f64,
    /// Least it may be.
    pub low: f64,
    /// Most it may be.
    pub high: f64,
}

impl Cycles {
    /// One that is exact.
    pub fn exact(cycles: f64) -> Self {
        Self { best: cycles, low: cycles, high: cycles }
    }

    /// For the block once, where it was measured `copies` times over.
    pub fn of(throughput: &Throughput, copies: f64) -> Self {
        let Throughput { cycles, low, high, .. } = *throughput;
        Self { best: cycles / copies, low: low / copies, high: high / copies }
    }

    /// The larger of two.
    fn max(self, other: Self) -> Self {
        if other.best > self.best { other } else { self }
    }
}

/// What bounds a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Fetching and decoding: more than the pipeline's width asks for.
    FrontEnd,
    /// Slots: as many operations as the pipeline issues in a cycle.
    IssueWidth,
    /// Execution ports, or a unit that is not pipelined.
    Ports,
    /// A chain of dependent instructions from one iteration to the next.
    Dependency,
    /// Such a chain through memory, or loads that wait for stores.
    StoreForwarding,
    /// Several bounds come up to the time within the errors.
    Undecided,
    /// None does.
    Unexplained,
}

impl Class {
    /// As documents have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::FrontEnd => "front-end",
            Self::IssueWidth => "issue-width",
            Self::Ports => "ports",
            Self::Dependency => "dependency",
            Self::StoreForwarding => "store-forwarding",
            Self::Undecided => "undecided",
            Self::Unexplained => "unexplained",
        }
    }
}

/// A recurrence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chain {
    /// What its latencies add up to.
    pub cycles: Cycles,
}

/// The block with its chains through registers cut.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cut {
    /// What is left.
    pub left: Cycles,
    /// Instructions that cut, for each time that the block is there.
    pub instructions: f64,
    /// The slots that they take, in cycles of the block once.
    pub cost: f64,
    /// The longest chain that is left, at least.
    pub rest: f64,
}

/// Everything the verdict is found from.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Evidence {
    /// The block's measured time.
    pub time: Cycles,
    /// The front end by itself: the block's skeleton.
    pub front_end: Option<Cycles>,
    /// The slots it takes, over the pipeline's width.
    pub slots: Option<Cycles>,
    /// The block's instructions without dependencies between iterations.
    pub free: Option<Cycles>,
    /// What is left of dependencies in that: latency over registers taken in turn. Where `free` is
    /// no longer than this, the ports may be faster than it.
    pub floor: Option<f64>,
    /// The longest recurrence through registers and flags alone.
    pub registers: Option<Chain>,
    /// The longest one that passes through memory.
    pub memory: Option<Chain>,
    /// The block with its memory kept apart, its registers as they are.
    pub apart: Option<Cycles>,
    /// The block with its chains through registers cut, its memory as it is.
    pub cut: Option<Cut>,
    /// Both.
    pub loose: Option<Cycles>,
}

/// What was found, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The bound.
    pub class: Class,
    /// For people: what says so.
    pub why: String,
}

/// How near a measured bound comes to the time that it explains: the spread of block measurements
/// is below 5 % for 95 of 100 blocks (docs/results/blocks.md).
const NEAR: f64 = 0.05;
/// Between this and [`NEAR`] it is not decided whether a bound explains the time.
const FAR: f64 = 0.08;
/// Front end and slots that come up to this share of the time leave it open whether it is the ports:
/// eliminated moves that now and then take a port made 1.24 of 1.00 cycles of one block.
const OPEN: f64 = 0.80;
/// A chain left by taking registers in turn that comes up to this share of the time leaves it open
/// what the ports need: how long its latency is depends on values (`div`: 11 by the tables, 15 here).
const LEFT: f64 = 0.60;
/// The same for a chain's latencies, which are sums of rounded figures.
const CHAIN_NEAR: f64 = 0.12;
const CHAIN_FAR: f64 = 0.18;
/// A chain whose latencies are a range that begins below this share of the time is no rival of what
/// was measured: it may as well be nothing.
const RIVAL: f64 = 0.50;
/// A variant that takes less than the block by this share shows that what was changed matters.
const FALLS: f64 = 0.10;

/// Whether a bound comes up to the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reaches {
    Yes,
    Perhaps,
    No,
}

/// Whether the time refutes a bound: its low end is above it by more than the errors. What is
/// `computed` is a sum of latencies.
pub fn is_refuted(bound: Cycles, time: Cycles, computed: bool) -> bool {
    bound.low > time.high * (1.0 + if computed { CHAIN_NEAR } else { NEAR })
}

/// A bound that is above the time by more than its error is wrong and explains nothing.
fn reaches(bound: Cycles, time: Cycles, near: f64, far: f64) -> Reaches {
    let short = |share: f64| bound.high < time.low * (1.0 - share);
    let beyond = |share: f64| bound.low > time.high * (1.0 + share);
    match (short(far) || beyond(far), short(near) || beyond(near)) {
        (true, _) => Reaches::No,
        (_, true) => Reaches::Perhaps,
        _ => Reaches::Yes,
    }
}

impl Evidence {
    /// Whether it is worth asking what the block waits for: nothing that its instructions need by
    /// themselves explains the time.
    pub fn waits(&self) -> bool {
        let none = |bound: Option<Cycles>| bound.is_none_or(|b| self.reached(b) != Reaches::Yes);
        none(self.free.filter(|_| !self.is_hidden())) && none(self.supply())
    }

    /// Whether the chain that taking registers in turn leaves hides what the ports need: it is no
    /// more than `free`, and `free` says nothing unless it is well below the time.
    fn is_hidden(&self) -> bool {
        let of = |free: Cycles| hides(self.floor, free) && !self.falls(free);
        self.free.is_some_and(of)
    }

    /// Whether a variant takes clearly less than the block.
    pub fn falls(&self, variant: Cycles) -> bool {
        variant.high < self.time.low * (1.0 - FALLS)
    }

    /// Whether a variant may take less, or more, or as long: nothing follows.
    fn wavers(&self, variant: Cycles) -> bool {
        !self.falls(variant) && variant.low < self.time.high * (1.0 - NEAR)
    }

    fn reached(&self, bound: Cycles) -> Reaches {
        reaches(bound, self.time, NEAR, FAR)
    }

    fn chain(&self, chain: Option<Chain>) -> Reaches {
        let Some(Chain { cycles }) = chain else { return Reaches::No };
        match reaches(cycles, self.time, CHAIN_NEAR, CHAIN_FAR) {
            Reaches::Yes if cycles.low < RIVAL * self.time.low => Reaches::Perhaps,
            found => found,
        }
    }

    /// What the block takes with its cuts if it waits for no chain that they cut: less no cut can show.
    pub fn least(&self, cut: &Cut) -> f64 {
        let slots = self.slots.map_or(0.0, |slots| slots.best) + cut.cost;
        let others = [self.ports(), self.front_end].into_iter().flatten();
        others.fold(slots.max(cut.rest), |least, bound| least.max(bound.best))
    }

    /// Whether cutting chains says anything: the block takes less, or it could have taken less, or it
    /// takes longer than its own slots, ports and the cuts explain.
    pub fn tells(&self, cut: &Cut) -> bool {
        let least = self.least(cut);
        self.falls(cut.left)
            || least < self.time.low * (1.0 - FALLS)
            || cut.left.low > least * (1.0 + FAR)
    }

    /// Whether chains through registers were cut, and that says something.
    fn is_cut(&self) -> bool {
        self.cut.is_some_and(|cut| self.tells(&cut))
    }

    /// What bringing the instructions to the ports takes: fetching, decoding, slots.
    fn supply(&self) -> Option<Cycles> {
        match (self.front_end, self.slots) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        }
    }

    /// What the ports take at most: the least that was measured without dependencies.
    fn ports(&self) -> Option<Cycles> {
        let all = [self.free, self.loose].into_iter().flatten();
        all.min_by(|a, b| a.best.total_cmp(&b.best))
    }

    /// For people: what is left of the time where chains are broken, and what they should take.
    fn left(&self) -> String {
        let of = |variant: Option<Cycles>, how: &str| {
            variant.map(|v| {
                format!("{:.2} of {:.2} cycles are left with {how}", v.best, self.time.best)
            })
        };
        let parts = [
            of(self.apart, "memory kept apart"),
            self.cut.map(|cut| self.left_by(&cut)),
            of(self.loose, "both"),
            Some(self.chains()),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// For people: what a cut left, and what it costs by itself.
    fn left_by(&self, cut: &Cut) -> String {
        let Cut { left, instructions, cost, .. } = cut;
        let says = match self.tells(cut) {
            true => String::new(),
            false => format!(
                "; without the chains it would take {:.2}, so that says nothing",
                self.least(cut)
            ),
        };
        format!(
            "{:.2} of {:.2} cycles are left with chains through registers cut (cuts: {} an \
             iteration, {cost:.2} cycles of slots{says})",
            left.best,
            self.time.best,
            (100.0 * instructions).round() / 100.0,
        )
    }

    /// For people: the recurrences.
    fn chains(&self) -> String {
        let of = |chain: Option<Chain>| {
            let Chain { cycles } = chain?;
            let range = match cycles.low < cycles.high {
                true => format!(" ({:.2} to {:.2})", cycles.low, cycles.high),
                false => String::new(),
            };
            let refuted = match is_refuted(cycles, self.time, true) {
                true => ", above the measurement: refuted",
                false => "",
            };
            Some(format!("{:.2}{range}{refuted}", cycles.best))
        };
        match (of(self.registers), of(self.memory)) {
            (Some(r), Some(m)) => {
                format!("its longest chain through registers takes {r}, through memory {m}")
            }
            (Some(r), None) => format!("its longest chain takes {r}"),
            (None, Some(m)) => format!("its longest chain, through memory, takes {m}"),
            (None, None) => "no chain is known".to_owned(),
        }
    }
}

/// Whether a chain that is left of dependencies hides what `free`, measured with it, takes without.
pub fn hides(floor: Option<f64>, free: Cycles) -> bool {
    floor.is_some_and(|floor| floor > free.low * LEFT)
}

/// Finds the bound that explains the time.
pub fn judge(evidence: &Evidence) -> Judgement {
    if evidence.waits() {
        return waiting(evidence);
    }
    if [evidence.registers, evidence.memory].iter().any(|c| evidence.chain(*c) == Reaches::Yes) {
        return undecided(format!(
            "both its chains and its instructions without dependencies come up to {:.2}: {}",
            evidence.time.best,
            evidence.chains()
        ));
    }
    match evidence.supply().map_or(Reaches::No, |s| evidence.reached(s)) {
        Reaches::Yes => supply_bound(evidence),
        Reaches::Perhaps => undecided(format!(
            "ports ({}) and front end or slots ({}) come too close to each other",
            text(evidence.ports()),
            text(evidence.supply())
        )),
        Reaches::No if evidence.supply().is_some_and(|s| s.high > OPEN * evidence.time.low) => {
            undecided(format!(
                "front end and slots ({}) leave too little to tell ports from them",
                text(evidence.supply())
            ))
        }
        Reaches::No => ports_bound(evidence),
    }
}

/// What was found of a block without its jump, which takes `body`, for the block with it: nothing, if
/// the jump takes more than a slot's share of the time.
pub fn with_jump(judgement: Judgement, whole: Cycles, body: Cycles) -> Judgement {
    if whole.low <= body.high * (1.0 + FALLS) {
        return judgement;
    }
    unexplained(format!(
        "the jump costs more than the rest of the block explains: {:.2} cycles with it, {:.2} without \
         ({})",
        whole.best,
        body.best,
        judgement.class.name()
    ))
}

fn text(cycles: Option<Cycles>) -> String {
    cycles.map_or("not measured".to_owned(), |c| format!("{:.2} cycles", c.best))
}

fn unexplained(why: String) -> Judgement {
    Judgement { class: Class::Unexplained, why }
}

fn undecided(why: String) -> Judgement {
    Judgement { class: Class::Undecided, why }
}

/// Front end and slots need as long as the block takes: which of the two?
fn supply_bound(evidence: &Evidence) -> Judgement {
    let time = evidence.time.best;
    let slots = evidence.slots.map_or(Reaches::No, |s| evidence.reached(s));
    // A front end that is slower than the slots, in blocks as fast as these, has fast and slow states.
    let apart = |front: Cycles, slots: Cycles| front.low > slots.high * (1.0 + NEAR);
    let differs = evidence.front_end.zip(evidence.slots).is_some_and(|(f, s)| apart(f, s));
    match slots {
        Reaches::Yes if differs => undecided(format!(
            "slots ({}) explain it, and the front end alone ({}) takes longer",
            text(evidence.slots),
            text(evidence.front_end)
        )),
        Reaches::Yes => Judgement {
            class: Class::IssueWidth,
            why: format!("its slots alone take {} of {time:.2}", text(evidence.slots)),
        },
        Reaches::Perhaps => undecided(format!(
            "front end ({}) and slots ({}) come too close to each other",
            text(evidence.front_end),
            text(evidence.slots)
        )),
        Reaches::No => Judgement {
            class: Class::FrontEnd,
            why: format!(
                "fetching and decoding alone take {} of {time:.2}, its slots {}",
                text(evidence.front_end),
                text(evidence.slots)
            ),
        },
    }
}

/// Its instructions without dependencies take as long, and bringing them there does not.
fn ports_bound(evidence: &Evidence) -> Judgement {
    let free = evidence.free.unwrap_or_default();
    Judgement {
        class: Class::Ports,
        why: format!(
            "its instructions without dependencies take {:.2} of {:.2} cycles; front end and slots \
             {}",
            free.best,
            evidence.time.best,
            text(evidence.supply())
        ),
    }
}

/// Nothing that it needs takes so long: it waits. What for, breaking chains tells.
fn waiting(evidence: &Evidence) -> Judgement {
    let falls = |variant: Option<Cycles>| variant.is_some_and(|v| evidence.falls(v));
    let wavers = |variant: Option<Cycles>| variant.is_some_and(|v| evidence.wavers(v));
    let left = evidence.left();
    match (falls(evidence.apart), falls(evidence.cut.map(|cut| cut.left))) {
        // A chain through both, or loads that wait for stores: without the stores nothing waits.
        (true, _) => Judgement {
            class: Class::StoreForwarding,
            why: format!("values come through memory: {left}"),
        },
        (false, _) if wavers(evidence.apart) => undecided(left),
        (false, true) => Judgement {
            class: Class::Dependency,
            why: format!("values come through registers: {left}"),
        },
        (false, false) => by_latency(evidence, &left),
    }
}

/// Breaking chains one kind at a time did not help, or could not be done: what their latencies say.
fn by_latency(evidence: &Evidence, left: &str) -> Judgement {
    let (registers, memory) = (evidence.chain(evidence.registers), evidence.chain(evidence.memory));
    // What was broken in vain is not the only one.
    let free = evidence.ports();
    if free.is_some_and(|f| !evidence.falls(f)) {
        let wavers = evidence.wavers(free.unwrap_or_default());
        let class = if evidence.is_hidden() || wavers || registers != Reaches::No {
            Class::Undecided
        } else {
            Class::Unexplained
        };
        let chain =
            evidence.floor.filter(|_| evidence.is_hidden()).map_or(String::new(), |floor| {
                format!(" at most, of which registers taken in turn leave a chain of {floor:.2}")
            });
        let why = format!("without dependencies {}{chain}; {left}", text(free));
        return Judgement { class, why };
    }
    let supply = evidence.supply().map_or(Reaches::No, |s| evidence.reached(s));
    match (registers, memory) {
        (Reaches::Yes, Reaches::No) if !evidence.is_cut() && supply == Reaches::No => {
            Judgement { class: Class::Dependency, why: format!("by its latencies: {left}") }
        }
        (Reaches::No, Reaches::Yes) if evidence.apart.is_none() => {
            Judgement { class: Class::StoreForwarding, why: format!("by its latencies: {left}") }
        }
        (Reaches::No, Reaches::No) => {
            Judgement { class: Class::Unexplained, why: format!("no bound explains it: {left}") }
        }
        _ => undecided(left.to_owned()),
    }
}

#[cfg(test)]
mod tests;
