//! A question for samples, and the choice of the sampled event: one that locates a node, else cycles, else the CPU
//! clock, with the reason.

use super::chooser::{Chooser, Note, PRECISE, WhyNot};
use crate::topdown::live::CountedCore;
use nix::errno::Errno;
use pmu::machine::{Finding, Machine};
use pmu::perf::Rate;
use pmu::sampling::{CallChains, FREQUENCY, Plan, RING, SampledEvent, ability};
use std::path::PathBuf;
use tma::{Error, Result};

/// Events to sample, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleAsk {
    /// Samples a second, for each event and CPU.
    pub frequency: u64,
    /// Events by perf's or the table's name, with perf's modifiers u, k, p and P.
    pub events: Vec<String>,
    /// Nodes whose events are to be sampled.
    pub nodes: Vec<String>,
    /// Nodes or events to sample beside cycles (or the CPU clock).
    pub beside: Vec<String>,
    /// Sample beside cycles what locates the nodes of the tree.
    pub locate: bool,
    /// Read the counts of level 1 at samples of cycles.
    pub per_function: bool,
    /// Record call chains.
    pub call_chains: CallChains,
    /// Record user registers.
    pub registers: bool,
    /// Record the last branches taken before each sample.
    pub branches: bool,
    /// Sample loads with their address, origin and latency: those that took at least so many cycles;
    /// 0: all.
    pub loads: Option<u64>,
    /// Events between samples, instead of `frequency`.
    pub period: Option<u64>,
    /// Bytes of the ring of each CPU.
    pub ring: usize,
    /// Folder for copies of programs that no path leads to afterwards; none are kept without it.
    pub programs: Option<PathBuf>,
    /// Most bytes of records; later ones are left out.
    pub most: u64,
}

impl Default for SampleAsk {
    fn default() -> Self {
        Self {
            frequency: FREQUENCY,
            events: Vec::new(),
            nodes: Vec::new(),
            beside: Vec::new(),
            locate: false,
            per_function: false,
            call_chains: CallChains::None,
            registers: false,
            branches: false,
            loads: None,
            period: None,
            ring: RING,
            programs: None,
            most: u64::MAX,
        }
    }
}

/// Where the kernel keeps its limit on samples a second.
const LIMIT: &str = "/proc/sys/kernel/perf_event_max_sample_rate";

/// A plan and its notes; no plan if nothing can be sampled here.
pub(crate) struct Chosen {
    pub plan: Option<Plan>,
    pub notes: Vec<Note>,
}

/// Chooses what to sample.
///
/// # Errors
/// An unknown event or node; an event given by name that cannot be sampled here.
pub(crate) fn choose(
    machine: &Machine,
    cores: &[CountedCore],
    blocked: Option<&Finding>,
    ask: &SampleAsk,
    user_only: bool,
) -> Result<Chosen> {
    let ability = match ability() {
        Ok(ability) => ability,
        Err(errno) => return nothing(machine, ask, errno),
    };
    let rate = Rate::Frequency(0);
    let mut chooser = Chooser { machine, cores, blocked, ability, rate, notes: Vec::new() };
    chooser.ability.user_only |= user_only;
    if ability.user_only && !user_only {
        let (cause, _) = machine.kernel.why_denied();
        chooser.notes.push(format!("kernel mode is not sampled: {cause}").into());
    }
    chooser.rate = match ask.period {
        Some(period) => Rate::Period(period),
        None => Rate::Frequency(chooser.limited(ask.frequency)),
    };
    let mut events = Vec::new();
    for event in &ask.events {
        events.extend(chooser.by_name(event)?);
    }
    let mut why_not = Vec::new();
    for node in &ask.nodes {
        match chooser.for_node(node)? {
            Ok(located) => events.extend(located),
            Err(why) => why_not.push(why),
        }
    }
    let mut beside = Vec::new();
    for name in &ask.beside {
        match chooser.beside(name)? {
            Ok(found) => beside.extend(found),
            Err(why) => why_not.push(why),
        }
    }
    if ask.locate {
        beside.extend(chooser.for_tree(&mut why_not));
    }
    if ask.branches {
        events = chooser.with_branches(events, ask.period)?;
    }
    if let Some(least) = ask.loads {
        events.extend(chooser.loads(least)?);
    }
    if ask.per_function {
        match chooser.with_counts() {
            Ok(reading) => events.splice(0..0, reading).for_each(drop),
            Err(why) => chooser.notes.push(Note::NoTree(why.to_string())),
        }
    }
    if events.is_empty() {
        events = chooser.usual(&why_not);
    } else {
        chooser.notes.extend(why_not.into_iter().map(|why| Note::Other(why.to_string())));
    }
    events.extend(beside);
    if ask.call_chains == CallChains::Branches {
        events = chooser.with_calls(events)?;
    }
    let mut distinct: Vec<SampledEvent> = Vec::new();
    for event in events {
        if !distinct.contains(&event) {
            distinct.push(event);
        }
    }
    let Chooser { ability, notes, .. } = chooser;
    let plan = (!distinct.is_empty()).then_some(Plan {
        events: distinct,
        call_chains: ask.call_chains,
        registers: ask.registers,
        user_only: ability.user_only,
        ring: ask.ring,
        ability,
    });
    Ok(Chosen { plan, notes })
}

/// The kernel opens no event at all.
fn nothing(machine: &Machine, ask: &SampleAsk, errno: Errno) -> Result<Chosen> {
    let (cause, remedy) = machine.kernel.why_denied();
    let what = format!("nothing can be sampled here ({})", errno.desc());
    if !ask.events.is_empty() {
        return Err(Error::not_possible(what).because(cause).hint(remedy));
    }
    Ok(Chosen { plan: None, notes: vec![format!("{what}: {cause}").into()] })
}

impl Chooser<'_> {
    /// `hertz`, or what the kernel allows.
    fn limited(&mut self, hertz: u64) -> u64 {
        let most = std::fs::read_to_string(LIMIT).ok().and_then(|t| t.trim().parse().ok());
        match most {
            Some(most) if hertz > most && most > 0 => {
                let note = format!(
                    "the kernel limits sampling to {most} per second, below {hertz} \
                     (kernel.perf_event_max_sample_rate)"
                );
                self.notes.push(note.into());
                most
            }
            _ => hertz,
        }
    }

    /// Cycles where they can be counted, else the CPU clock; and why.
    fn usual(&mut self, why_not: &[WhyNot]) -> Vec<SampledEvent> {
        let cycles = || -> std::result::Result<Vec<SampledEvent>, WhyNot> {
            if let Some(why) = self.no_pmu() {
                return Err(why);
            }
            let all = self.hardware("cycles", 0, PRECISE).into_iter();
            all.map(|e| self.settled(e).map_err(WhyNot::NoCycles)).collect()
        };
        let cycles = cycles();
        let name = if cycles.is_ok() { "cycles" } else { "cpu-clock" };
        let (events, reason) = match cycles {
            Ok(events) => (events, None),
            Err(why) => {
                let clock = self.settled(self.clock());
                if let Err(errno) = clock {
                    let note = format!("nothing can be sampled here: {}", errno.desc());
                    self.notes.push(note.into());
                }
                (clock.into_iter().collect(), Some(why))
            }
        };
        // A node that has no event here mostly has none for the same reason.
        let is_said = why_not.iter().any(WhyNot::is_no_hardware);
        let reason = reason.filter(|reason| !(reason.is_no_hardware() && is_said));
        let reasons: Vec<String> = why_not.iter().chain(&reason).map(WhyNot::to_string).collect();
        if !events.is_empty() && !reasons.is_empty() {
            let is_plain = why_not.is_empty() && self.machine.core_pmus().next().is_none();
            self.notes.push(match is_plain {
                true => Note::NoPmu,
                false => Note::Sampled(format!("{name}: {}", reasons.join("; "))),
            });
        }
        events
    }
}
