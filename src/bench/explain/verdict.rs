//! The verdict: the bound that explains a block's time, from the evidence.

use super::cycles::{Cycles, NEAR, Reaches};
use super::model::{Evidence, FASTER};
use crate::measurement::{Class, Verdict};

impl Verdict {
    /// Whether it names a bound.
    pub fn is_decided(&self) -> bool {
        !matches!(self.class, Class::Undecided | Class::Unexplained)
    }
}

/// Why a faster variant shows nothing.
const AS_FAST: &str = "at another code alignment the unchanged block is as fast as this variant";

/// Finds the bound that explains the time.
pub fn judge(evidence: &Evidence) -> Verdict {
    if evidence.only_units_are_left() {
        return units_bound(evidence);
    }
    if evidence.is_unexplained_by_resources() {
        return dependency_bound(evidence);
    }
    let latencies = [evidence.register_latency, evidence.memory_latency];
    if latencies.iter().any(|l| evidence.latency_reached(*l) == Reaches::Yes) {
        return undecided(format!(
            "both loop-carried latency and the instructions with independent operands reach {:.2} \
             cycles: {}",
            evidence.time.best,
            evidence.latencies()
        ));
    }
    match evidence.front_end_or_slots().map_or(Reaches::No, |s| evidence.reached(s)) {
        Reaches::Yes => front_end_or_slots_bound(evidence),
        Reaches::Perhaps => undecided(format!(
            "ports ({}) and front end or slots ({}) are too close to tell apart",
            text(evidence.ports()),
            text(evidence.front_end_or_slots())
        )),
        Reaches::No
            if evidence.front_end_or_slots().is_some_and(|s| evidence.leaves_ports_open(s)) =>
        {
            undecided(match evidence.slots_unconfirmed {
                true => "the issue slots that it takes are not confirmed, so that ports are not told from \
                         them"
                    .to_owned(),
                false => format!(
                    "front end and slots ({}) are too close to the measured time to confirm the ports",
                    text(evidence.front_end_or_slots())
                ),
            })
        }
        Reaches::No if evidence.independent_waits_for_front_end() => undecided(format!(
            "the instructions with independent operands take {}, but their own front end takes {}: what \
             they need of the ports is not known",
            text(evidence.independent),
            text(evidence.independent_front_end)
        )),
        Reaches::No => ports_bound(evidence),
    }
}

/// The verdict on a whole block, from the one on the block without its final jump; unexplained if the
/// jump adds more than [`FASTER`].
pub fn with_jump(verdict: Verdict, whole: Cycles, body: Cycles) -> Verdict {
    if whole.low <= body.high * (1.0 + FASTER) {
        return verdict;
    }
    unexplained(format!(
        "the final jump costs more than the rest of the block explains: {:.2} cycles with it, {:.2} \
         without ({})",
        whole.best,
        body.best,
        verdict.class.name()
    ))
}

fn text(cycles: Option<Cycles>) -> String {
    cycles.map_or("not measured".to_owned(), |cycles| format!("{cycles} cycles"))
}

fn unexplained(why: String) -> Verdict {
    Verdict { class: Class::Unexplained, why }
}

fn undecided(why: String) -> Verdict {
    Verdict { class: Class::Undecided, why }
}

/// Front end or slots reach the time: decides between the two.
fn front_end_or_slots_bound(evidence: &Evidence) -> Verdict {
    let time = evidence.time.best;
    let slots = evidence.slots.map_or(Reaches::No, |s| evidence.reached(s));
    // Where the slots already explain the time, a slower front end has fast and slow states.
    let slower = |front: Cycles, slots: Cycles| front.low > slots.high * (1.0 + NEAR);
    let differs = evidence.front_end.zip(evidence.slots).is_some_and(|(f, s)| slower(f, s));
    match slots {
        Reaches::Yes if differs => undecided(format!(
            "slots ({}) explain the time, but the front end alone ({}) is slower",
            text(evidence.slots),
            text(evidence.front_end)
        )),
        Reaches::Yes => Verdict {
            class: Class::IssueWidth,
            why: format!("its issue slots alone take {} of {time:.2}", text(evidence.slots)),
        },
        Reaches::Perhaps => undecided(format!(
            "front end ({}) and slots ({}) are too close to tell apart",
            text(evidence.front_end),
            text(evidence.slots)
        )),
        Reaches::No if evidence.ports_take_as_long() => undecided(format!(
            "front end ({}) and the instructions with independent operands ({}, their own front end {}) \
             both reach the time",
            text(evidence.front_end),
            text(evidence.independent),
            text(evidence.independent_front_end)
        )),
        Reaches::No if evidence.withstands_longer_encodings() => undecided(format!(
            "the front end ({}) comes up to the time, but with longer encodings that relieve it the \
             block still takes {}",
            text(evidence.front_end),
            text(evidence.lengthened.map(|longer| longer.time))
        )),
        Reaches::No => Verdict {
            class: Class::FrontEnd,
            why: format!(
                "fetching and decoding alone take {} of {time:.2}, its issue slots {}{}",
                text(evidence.front_end),
                text(evidence.slots),
                evidence.lengthened.map_or(String::new(), |longer| format!(
                    "; with longer encodings of the same instructions {} remain",
                    text(Some(longer.time))
                ))
            ),
        },
    }
}

/// The instructions with independent operands take as long as the block; front end and slots do not.
fn ports_bound(evidence: &Evidence) -> Verdict {
    let independent = evidence.independent.unwrap_or_default();
    Verdict {
        class: Class::Ports,
        why: format!(
            "its instructions with independent operands take {independent} of {:.2} cycles; front end {}, slots {}",
            evidence.time.best,
            text(evidence.front_end),
            text(evidence.slots)
        ),
    }
}

/// Execution units bound the block, by exclusion: its instructions cannot be made independent.
fn units_bound(evidence: &Evidence) -> Verdict {
    Verdict {
        class: Class::Ports,
        why: format!(
            "no loop-carried dependency comes near {:.2} cycles, so that iterations overlap; front end \
             and slots take {}: execution units, by elimination",
            evidence.time.best,
            text(evidence.front_end_or_slots())
        ),
    }
}

/// No resource explains the time: decides by the variants with broken dependencies.
fn dependency_bound(evidence: &Evidence) -> Verdict {
    let is_faster = |variant: Option<Cycles>| variant.is_some_and(|v| evidence.is_faster(v));
    let may_be_faster =
        |variant: Option<Cycles>| variant.is_some_and(|v| evidence.may_be_faster(v));
    let remaining = evidence.remaining();
    let registers = evidence.registers_broken.map(|broken| broken.remaining);
    match (is_faster(evidence.memory_broken), is_faster(registers)) {
        (true, _) if !evidence.is_through_memory() => undecided(format!(
            "{remaining}, but {}",
            match evidence.memory_control {
                Some(control) => format!(
                    "{:.2} in the same copies with the dependencies left as they are",
                    control.best
                ),
                None => AS_FAST.to_owned(),
            }
        )),
        // Breaking memory removes both a chain through memory and loads that wait for stores, so it decides.
        (true, _) => Verdict {
            class: Class::StoreForwarding,
            why: format!(
                "the dependency is through memory: {remaining}{}",
                evidence.cost_of_forwarding()
            ),
        },
        (false, _) if may_be_faster(evidence.memory_broken) => undecided(remaining),
        (false, true) if evidence.registers_fall_short() => undecided(format!(
            "the longest chain is too short to explain the time, and what breaking it saves may come from other \
             ports: {remaining}"
        )),
        (false, true) if !registers.is_some_and(|r| evidence.is_faster_than_every_state(r)) => {
            undecided(format!("{remaining}, but {AS_FAST}"))
        }
        (false, true) => Verdict {
            class: Class::Dependency,
            why: format!("the dependency is through registers: {remaining}"),
        },
        (false, false) => by_latency(evidence, &remaining),
    }
}

/// Breaking one kind of dependency at a time made no difference, or was not possible: decides by
/// latencies.
fn by_latency(evidence: &Evidence, remaining: &str) -> Verdict {
    if evidence.is_l1_access() {
        return Verdict {
            class: Class::L1Access,
            why: format!(
                "{} of {:.2} cycles remain with its loads in one cache line and its stores in another",
                evidence.one_line.unwrap_or_default(),
                evidence.time.best
            ),
        };
    }
    let registers = evidence.latency_alone_reached(evidence.register_latency);
    let memory = evidence.latency_alone_reached(evidence.memory_latency);
    // Without any dependencies it is no faster: they are not the only cause.
    let least_without_dependencies = evidence.ports();
    if let Some(least) = least_without_dependencies.filter(|least| !evidence.is_faster(*least)) {
        let may_be_faster = evidence.may_be_faster(least);
        let is_limited = evidence.is_latency_limited();
        let class = if is_limited || may_be_faster || registers != Reaches::No {
            Class::Undecided
        } else {
            Class::Unexplained
        };
        let residual = evidence.residual_latency.filter(|_| is_limited);
        let caveat = residual.map_or(String::new(), |latency| {
            format!(
                " at most, including up to {latency:.2} of loop-carried latency that cannot be broken"
            )
        });
        let why = format!("with independent operands {least} cycles{caveat}; {remaining}");
        return Verdict { class, why };
    }
    let resources = evidence.front_end_or_slots().map_or(Reaches::No, |s| evidence.reached(s));
    match (registers, memory) {
        (Reaches::Yes, Reaches::No)
            if !evidence.registers_ruled_out() && resources == Reaches::No =>
        {
            Verdict { class: Class::Dependency, why: format!("by its latencies: {remaining}") }
        }
        (Reaches::No, Reaches::Yes) if evidence.memory_broken.is_none() => {
            Verdict { class: Class::StoreForwarding, why: format!("by its latencies: {remaining}") }
        }
        (Reaches::No, Reaches::No) => {
            Verdict { class: Class::Unexplained, why: format!("no bound explains it: {remaining}") }
        }
        _ => undecided(remaining.to_owned()),
    }
}

#[cfg(test)]
mod tests;
