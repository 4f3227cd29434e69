//! The verdict: which bound explains a block's time.
//!
//! A max-of-bounds model. Every bound is a time that the block cannot beat, each for a reason of
//! its own; the largest that comes up to the measured time explains it. Bounds overlap, so they
//! are compared with the time and never added up.

/// A time in core cycles per iteration, with its error.
#[derive(Debug, Clone, Copy, PartialEq)]
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

    /// `low` to `high`, their middle the best.
    pub fn range(low: f64, high: f64) -> Self {
        Self { best: (low + high) / 2.0, low, high }
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

/// The recurrence that is known to take longest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chain {
    /// What its latencies add up to.
    pub cycles: Cycles,
    /// Whether it passes through memory.
    pub through_memory: bool,
}

/// Everything the verdict is found from.
#[derive(Debug, Clone, Copy, PartialEq)]
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
    /// The longest recurrence.
    pub chain: Option<Chain>,
    /// Whether loads wait for stores that cannot be forwarded to them.
    pub blocked: bool,
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
/// is below 5 % for 95 of 100 blocks (docs/block-profiler.md, "Figures").
const NEAR: f64 = 0.05;
/// Between this and [`NEAR`] it is not decided whether a bound explains the time.
const FAR: f64 = 0.08;
/// The same for a chain's latencies, which are sums of rounded figures.
const CHAIN_NEAR: f64 = 0.12;
const CHAIN_FAR: f64 = 0.18;

/// Whether a bound comes up to the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reaches {
    Yes,
    Perhaps,
    No,
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

/// Finds the bound that explains the time.
pub fn judge(evidence: &Evidence) -> Judgement {
    let Some(free) = evidence.free else { return without_free(evidence) };
    match reaches(free, evidence.time, NEAR, FAR) {
        Reaches::Yes => throughput_bound(evidence, free),
        Reaches::No if free.low > evidence.time.high => unexplained(format!(
            "its instructions without dependencies take {:.2} cycles, longer than the block itself",
            free.best
        )),
        Reaches::No => latency_bound(evidence, free),
        Reaches::Perhaps => undecided(format!(
            "without dependencies {:.2} cycles are left of {:.2}: too close to tell latency from \
             throughput",
            free.best, evidence.time.best
        )),
    }
}

fn undecided(why: String) -> Judgement {
    Judgement { class: Class::Undecided, why }
}

fn unexplained(why: String) -> Judgement {
    Judgement { class: Class::Unexplained, why }
}

/// Without dependencies it takes as long: what its instructions need bounds it.
fn throughput_bound(evidence: &Evidence, free: Cycles) -> Judgement {
    let time = evidence.time;
    let chain = evidence.chain.map(|c| reaches(c.cycles, time, CHAIN_NEAR, CHAIN_FAR));
    if chain.is_some_and(|c| c != Reaches::No) {
        return undecided(format!(
            "both its longest chain ({:.2} cycles) and its instructions without dependencies \
             ({:.2}) come up to {:.2}",
            evidence.chain.map_or(0.0, |c| c.cycles.best),
            free.best,
            time.best
        ));
    }
    if evidence.floor.is_some_and(|floor| floor > free.low * (1.0 - NEAR)) {
        return undecided(format!(
            "registers taken in turn leave a chain of {:.2} cycles: the ports need no more than {:.2}",
            evidence.floor.unwrap_or_default(),
            free.best
        ));
    }
    let of = |bound: Option<Cycles>| bound.map_or(Reaches::No, |b| reaches(b, time, NEAR, FAR));
    let cycles = |bound: Option<Cycles>| bound.map_or(0.0, |b| b.best);
    let (front, slots) = (of(evidence.front_end), of(evidence.slots));
    match (front, slots) {
        (Reaches::Yes, Reaches::Yes | Reaches::Perhaps) | (_, Reaches::Yes) => Judgement {
            class: Class::IssueWidth,
            why: format!(
                "its slots alone take {:.2} of {:.2} cycles",
                cycles(evidence.slots.or(evidence.front_end)),
                time.best
            ),
        },
        (Reaches::Yes, Reaches::No) => Judgement {
            class: Class::FrontEnd,
            why: format!(
                "fetching and decoding alone take {:.2} of {:.2} cycles, its slots {:.2}",
                cycles(evidence.front_end),
                time.best,
                cycles(evidence.slots)
            ),
        },
        (Reaches::No, Reaches::No) => Judgement {
            class: Class::Ports,
            why: format!(
                "its instructions without dependencies take {:.2} of {:.2} cycles; front end and \
                 slots need {:.2}",
                free.best,
                time.best,
                cycles(evidence.front_end).max(cycles(evidence.slots))
            ),
        },
        _ => undecided(format!(
            "ports ({:.2} cycles) and front end or slots ({:.2}) come too close to each other",
            free.best,
            cycles(evidence.front_end).max(cycles(evidence.slots))
        )),
    }
}

/// Without dependencies it is faster: they are what it waits for.
fn latency_bound(evidence: &Evidence, free: Cycles) -> Judgement {
    let time = evidence.time;
    let Some(chain) = evidence.chain else { return no_chain(evidence, free) };
    let class = match chain.through_memory {
        true => Class::StoreForwarding,
        false => Class::Dependency,
    };
    let measured = format!(
        "its longest chain takes {:.2} of {:.2} cycles; without dependencies {:.2} are left",
        chain.cycles.best, time.best, free.best
    );
    match reaches(chain.cycles, time, CHAIN_NEAR, CHAIN_FAR) {
        Reaches::Yes => Judgement { class, why: measured },
        Reaches::Perhaps => undecided(format!("{measured}: too far apart to be sure")),
        Reaches::No => no_chain(evidence, free),
    }
}

/// It waits for dependencies, of which none is known to take so long.
fn no_chain(evidence: &Evidence, free: Cycles) -> Judgement {
    let difference = format!(
        "without dependencies {:.2} of {:.2} cycles are left, and its longest known chain takes {:.2}",
        free.best,
        evidence.time.best,
        evidence.chain.map_or(0.0, |c| c.cycles.best)
    );
    match evidence.blocked {
        true => Judgement {
            class: Class::StoreForwarding,
            why: format!("loads wait for stores that cannot be forwarded: {difference}"),
        },
        false => unexplained(difference),
    }
}

/// The instructions could not be measured without dependencies.
fn without_free(evidence: &Evidence) -> Judgement {
    let time = evidence.time;
    let near =
        |bound: Option<Cycles>| bound.is_some_and(|b| reaches(b, time, NEAR, FAR) == Reaches::Yes);
    let chain =
        evidence.chain.filter(|c| reaches(c.cycles, time, CHAIN_NEAR, CHAIN_FAR) == Reaches::Yes);
    let without = "they could not be measured without their dependencies";
    match (chain, near(evidence.front_end) || near(evidence.slots)) {
        (Some(chain), false) => Judgement {
            class: match chain.through_memory {
                true => Class::StoreForwarding,
                false => Class::Dependency,
            },
            why: format!(
                "its longest chain takes {:.2} of {:.2} cycles; {without}",
                chain.cycles.best, time.best
            ),
        },
        (None, true) => Judgement {
            class: Class::IssueWidth,
            why: format!("front end and slots alone take so long; {without}"),
        },
        (Some(_), true) => undecided(format!("chain, front end and slots take as long; {without}")),
        (None, false) => unexplained(format!("no chain and no slots take so long; {without}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(time: f64, free: f64, front: f64) -> Evidence {
        Evidence {
            time: Cycles::exact(time),
            front_end: Some(Cycles::exact(front)),
            slots: Some(Cycles::exact(front)),
            free: Some(Cycles::exact(free)),
            floor: None,
            chain: None,
            blocked: false,
        }
    }

    fn chain(cycles: f64, through_memory: bool) -> Option<Chain> {
        Some(Chain { cycles: Cycles::exact(cycles), through_memory })
    }

    // The three blocks and their figures (block, dependencies broken, front end) are those that a
    // prototype measured on Zen 3: an imul chain with adds, three independent imuls, six nops.
    #[test]
    fn blocks_of_known_nature_get_their_bound() {
        let imul_chain = Evidence { chain: chain(3.0, false), ..evidence(3.0, 1.0, 0.67) };
        assert_eq!(judge(&imul_chain).class, Class::Dependency);
        let imuls = Evidence { chain: chain(1.0, false), ..evidence(3.0, 3.0, 0.5) };
        assert_eq!(judge(&imuls).class, Class::Ports);
        assert_eq!(judge(&evidence(1.0, 1.0, 1.0)).class, Class::IssueWidth);
    }

    #[test]
    fn more_than_the_slots_ask_for_is_the_front_end() {
        let wide = Evidence { slots: Some(Cycles::exact(0.67)), ..evidence(2.0, 2.0, 2.0) };
        assert_eq!(judge(&wide).class, Class::FrontEnd);
    }

    #[test]
    fn a_chain_through_memory_is_store_forwarding() {
        let counter = Evidence { chain: chain(5.9, true), ..evidence(6.0, 1.0, 0.5) };
        assert_eq!(judge(&counter).class, Class::StoreForwarding);
        let blocked = Evidence { blocked: true, ..evidence(18.5, 1.0, 0.5) };
        assert_eq!(judge(&blocked).class, Class::StoreForwarding);
    }

    #[test]
    fn two_that_come_close_are_not_decided() {
        let both = Evidence { chain: chain(3.0, false), ..evidence(3.0, 3.0, 0.5) };
        assert_eq!(judge(&both).class, Class::Undecided);
        let between = Evidence { chain: chain(3.0, false), ..evidence(3.0, 2.8, 0.5) };
        assert_eq!(judge(&between).class, Class::Undecided);
        let floored = Evidence { floor: Some(3.0), ..evidence(3.0, 3.0, 0.5) };
        assert_eq!(judge(&floored).class, Class::Undecided);
    }

    #[test]
    fn what_nothing_explains_is_said_so() {
        let short = Evidence { chain: chain(4.0, false), ..evidence(9.0, 1.0, 0.5) };
        let judged = judge(&short);
        assert_eq!(judged.class, Class::Unexplained);
        assert!(judged.why.contains("4.00"), "{}", judged.why);
        let wrong = evidence(2.0, 3.0, 0.5);
        assert_eq!(judge(&wrong).class, Class::Unexplained);
    }

    #[test]
    fn a_chain_alone_is_enough_where_nothing_else_can_be_measured() {
        let only = Evidence { free: None, chain: chain(3.0, false), ..evidence(3.0, 0.0, 0.5) };
        assert_eq!(judge(&only).class, Class::Dependency);
    }
}
