//! What to sample: the event that locates a node, else cycles, else the CPU clock; and why.

use super::names::{
    CPU_CLOCK, HARDWARE, HARDWARE_EVENTS, Modifiers, PRECISE, RAW, SOFTWARE_EVENTS, raw,
};
use crate::topdown::live::CountedCore;
use nix::errno::Errno;
use pmu::machine::{Encoding, Finding, Machine};
use pmu::perf::{Rate, code, software};
use pmu::sampling::{
    Ability, CallChains, Extra, FREQUENCY, Plan, RING, SampledEvent, ability,
    with_supported_precision,
};
use tma::error::{Error, Result};
use tma::tables::Table;

/// What to sample.
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
        }
    }
}

/// Why no hardware event can be counted or sampled.
pub const NO_PMU: &str = "no core PMU";

/// Where the kernel keeps its limit on samples a second.
const LIMIT: &str = "/proc/sys/kernel/perf_event_max_sample_rate";
/// A plan and its notes; no plan if nothing can be sampled here.
pub(crate) struct Chosen {
    pub plan: Option<Plan>,
    pub notes: Vec<String>,
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
        chooser.notes.push(format!("kernel mode is not sampled: {cause}"));
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
            Err(why) => chooser.notes.push(format!("no tree per function: {why}")),
        }
    }
    if events.is_empty() {
        events = chooser.usual(&why_not);
    } else {
        chooser.notes.extend(why_not);
    }
    events.extend(beside);
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
    Ok(Chosen { plan: None, notes: vec![format!("{what}: {cause}")] })
}

pub(super) struct Chooser<'a> {
    pub machine: &'a Machine,
    pub cores: &'a [CountedCore],
    pub blocked: Option<&'a Finding>,
    pub ability: Ability,
    pub rate: Rate,
    pub notes: Vec<String>,
}

impl Chooser<'_> {
    /// `hertz`, or what the kernel allows.
    fn limited(&mut self, hertz: u64) -> u64 {
        let most = std::fs::read_to_string(LIMIT).ok().and_then(|t| t.trim().parse().ok());
        match most {
            Some(most) if hertz > most && most > 0 => {
                self.notes.push(format!(
                    "the kernel limits sampling to {most} per second, below {hertz} \
                     (kernel.perf_event_max_sample_rate)"
                ));
                most
            }
            _ => hertz,
        }
    }

    pub fn event(&self, name: &str, encoding: Encoding, precise: u8) -> SampledEvent {
        let rate = self.rate;
        let (name, extra) = (name.to_owned(), Extra::default());
        SampledEvent {
            name,
            encoding,
            precise,
            rate,
            cpus: None,
            extra,
            group: Vec::new(),
            inherits: true,
        }
    }

    pub fn settled(&self, event: SampledEvent) -> std::result::Result<SampledEvent, Errno> {
        with_supported_precision(event, self.ability.user_only)
    }

    /// The event that a user has named.
    pub fn by_name(&mut self, text: &str) -> Result<Vec<SampledEvent>> {
        let (base, modifiers) = self.split(text)?;
        let found = self.known(base).map_err(|why| {
            Error::not_possible(format!("`{base}` cannot be sampled here")).because(why)
        })?;
        if found.is_empty() {
            return Err(self.unknown(base));
        }
        let mut events = Vec::new();
        for mut event in found {
            event.encoding.user_only |= modifiers.user_only;
            event.encoding.kernel_only |= modifiers.kernel_only;
            event.precise = modifiers.precise;
            let settled = self.settled(event).map_err(|errno| self.refused(text, errno))?;
            if settled.precise < modifiers.precise && !modifiers.any {
                let (got, asked) = (settled.precise, modifiers.precise);
                let note = format!("`{base}` can be sampled with precise_ip {got}, not {asked}");
                self.notes.push(note);
            }
            events.push(settled);
        }
        Ok(events)
    }

    fn refused(&self, text: &str, errno: Errno) -> Error {
        let error = Error::not_possible(format!("`{text}` cannot be sampled here"));
        let no_pmu = self.blocked.map(|f| f.what.clone());
        let cause = no_pmu.filter(|_| errno != Errno::EACCES).unwrap_or(errno.desc().into());
        error.because(cause).hint("omit -e to sample cycles, or cpu-clock without a PMU")
    }

    /// The name and its modifiers. Names in tables may contain a colon.
    fn split<'t>(&self, text: &'t str) -> Result<(&'t str, Modifiers)> {
        let is_known = self.cores.iter().any(|c| c.table.event(text).is_some());
        match text.rsplit_once(':') {
            Some((base, letters)) if !is_known => match Modifiers::parse(letters) {
                Some(modifiers) => Ok((base, modifiers)),
                None => Err(Error::usage(format!("`{letters}` in `{text}` is not a modifier"))
                    .hint("u user mode, k kernel mode, p to ppp precise, P most precise")),
            },
            _ => Ok((text, Modifiers::default())),
        }
    }

    /// Events by this name: of the tables, of the kernel, or raw (`r1c2`).
    fn known(&self, base: &str) -> std::result::Result<Vec<SampledEvent>, String> {
        let number = |all: &[(&str, u64)]| all.iter().find(|(n, _)| *n == base).map(|(_, c)| *c);
        if let Some(config) = number(&SOFTWARE_EVENTS) {
            return Ok(vec![self.event(base, software(config), 0)]);
        }
        if let Some(config) = number(&HARDWARE_EVENTS) {
            return Ok(self.hardware(base, config, 0));
        }
        if let Some(config) = raw(base) {
            let encoding = Encoding { kind: RAW, config, ..Encoding::default() };
            return Ok(vec![self.event(base, encoding, 0)]);
        }
        let mut why = None;
        let mut events = Vec::new();
        for core in self.cores {
            match self.of_table(core, base) {
                Some(Ok(event)) => events.push(event),
                Some(Err(reason)) => why = Some(reason),
                None => {}
            }
        }
        match why {
            Some(why) if events.is_empty() => Err(why),
            _ => Ok(events),
        }
    }

    /// A generic hardware event, on every kind of core.
    pub fn hardware(&self, name: &str, config: u64, precise: u8) -> Vec<SampledEvent> {
        let pmus: Vec<_> = self.machine.core_pmus().collect();
        if pmus.len() < 2 {
            let encoding = Encoding { kind: HARDWARE, config, ..Encoding::default() };
            return vec![self.event(name, encoding, precise)];
        }
        // PERF_PMU_TYPE_SHIFT: the PMU of a hybrid in the upper half (linux/perf_event.h).
        let of = |pmu: &&pmu::machine::Pmu| {
            let config = config | u64::from(pmu.kind) << 32;
            let encoding = Encoding { kind: HARDWARE, config, ..Encoding::default() };
            let name = format!("{}/{name}/", pmu.name);
            SampledEvent { cpus: pmu.cpus.clone(), ..self.event(&name, encoding, precise) }
        };
        pmus.iter().map(of).collect()
    }

    /// An event of a core's table; `None` if it has none of this name.
    pub fn of_table(
        &self,
        core: &CountedCore,
        name: &str,
    ) -> Option<std::result::Result<SampledEvent, String>> {
        let id = core.table.event(name)?;
        let pmu = core.pmu.as_ref().and_then(|n| self.machine.pmu(n));
        let Some(pmu) = pmu.filter(|_| self.blocked.is_none()) else {
            let why = self.blocked.map_or(NO_PMU, |f| f.what.as_str());
            return Some(Err(why.to_owned()));
        };
        let coded = match code(&core.table, id, pmu, self.machine.topology.smt) {
            Ok(coded) => coded,
            Err(why) => return Some(Err(why.to_string())),
        };
        let precise = core.table.events[usize::from(id)].spec.precise;
        let event = self.event(name, coded.encoding, if precise { PRECISE } else { 0 });
        Some(Ok(SampledEvent { cpus: pmu.cpus.clone(), ..event }))
    }

    /// Cycles where they can be counted, else the CPU clock; and why.
    fn usual(&mut self, why_not: &[String]) -> Vec<SampledEvent> {
        let cycles = || -> std::result::Result<Vec<SampledEvent>, String> {
            if self.machine.core_pmus().next().is_none() {
                return Err(NO_PMU.into());
            }
            if let Some(finding) = self.blocked {
                return Err(finding.what.clone());
            }
            let refused = |e: Errno| format!("the kernel refuses cycles ({})", e.desc());
            let all = self.hardware("cycles", 0, PRECISE).into_iter();
            all.map(|e| self.settled(e).map_err(refused)).collect()
        };
        let cycles = cycles();
        let name = if cycles.is_ok() { "cycles" } else { "cpu-clock" };
        let reasons: Vec<&str> = why_not.iter().map(String::as_str).collect();
        let (events, reason) = match cycles {
            Ok(events) => (events, None),
            Err(why) => {
                let clock = self.settled(self.clock());
                if let Err(errno) = clock {
                    self.notes.push(format!("nothing can be sampled here: {}", errno.desc()));
                }
                (clock.into_iter().collect(), Some(why))
            }
        };
        // A node that has no event here mostly has none for the same reason.
        let reason = reason.filter(|r| !reasons.iter().any(|n| n.contains(r.as_str())));
        let reasons: Vec<&str> = reasons.into_iter().chain(reason.as_deref()).collect();
        if !events.is_empty() && !reasons.is_empty() {
            self.notes.push(format!("sampled on {name}: {}", reasons.join("; ")));
        }
        events
    }

    /// The CPU clock.
    pub fn clock(&self) -> SampledEvent {
        self.event("cpu-clock", software(CPU_CLOCK), 0)
    }

    fn unknown(&self, base: &str) -> Error {
        let tables = self.cores.iter().flat_map(|c| table_names(&c.table));
        let generic = SOFTWARE_EVENTS.iter().chain(&HARDWARE_EVENTS).map(|(n, _)| *n);
        let near = tma::error::nearest(base, tables.chain(generic));
        let hint = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "perf's names such as cycles and cpu-clock, those of the table, or raw: \
                     r01c2"
                .into(),
        };
        Error::usage(format!("there is no event `{base}`")).hint(hint)
    }
}

fn table_names(table: &Table) -> impl Iterator<Item = &str> {
    table.events.iter().map(|e| e.name.as_str())
}
