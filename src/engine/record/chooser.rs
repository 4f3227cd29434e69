//! Encodes events to sample on this machine's cores as the kernel takes them: perf's names, with modifiers after
//! the colon. Has the reasons why something cannot be sampled, and notes, which a session keeps as words that are
//! read again here.

use crate::topdown::live::CountedCore;
use nix::errno::Errno;
use pmu::machine::{Encoding, Finding, Machine};
use pmu::perf::{Rate, code, software};
use pmu::sampling::{Ability, Extra, SampledEvent, with_supported_precision};
use std::fmt;
use tma::Error;
use tma::quantity::Missing;

/// The inputs of the choice, and what the user must know of it.
pub(super) struct Chooser<'a> {
    pub machine: &'a Machine,
    pub cores: &'a [CountedCore],
    pub blocked: Option<&'a Finding>,
    pub ability: Ability,
    pub rate: Rate,
    pub notes: Vec<Note>,
}

impl Chooser<'_> {
    /// An event at the chosen rate, on all CPUs, with nothing more in its records.
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

    /// The event with the highest precision up to its own that the kernel takes.
    ///
    /// # Errors
    /// The kernel refuses it with any.
    pub fn settled(&self, event: SampledEvent) -> std::result::Result<SampledEvent, Errno> {
        with_supported_precision(event, self.ability.user_only)
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
    /// The inner error says why it cannot be sampled here.
    pub fn of_table(
        &self,
        core: &CountedCore,
        name: &str,
    ) -> Option<std::result::Result<SampledEvent, WhyNot>> {
        let id = core.table.event(name)?;
        let pmu = core.pmu.as_ref().and_then(|n| self.machine.pmu(n));
        let Some(pmu) = pmu.filter(|_| self.blocked.is_none()) else {
            return Some(Err(WhyNot::no_hardware(self.blocked)));
        };
        let coded = match code(&core.table, id, pmu, self.machine.topology.smt) {
            Ok(coded) => coded,
            Err(why) => return Some(Err(WhyNot::Uncoded(why))),
        };
        let precise = core.table.events[usize::from(id)].spec.precise;
        let event = self.event(name, coded.encoding, if precise { PRECISE } else { 0 });
        Some(Ok(SampledEvent { cpus: pmu.cpus.clone(), ..event }))
    }

    /// The CPU clock.
    pub fn clock(&self) -> SampledEvent {
        self.event("cpu-clock", software(CPU_CLOCK), 0)
    }
}

/// The most precise that `precise_ip` can be.
pub(super) const PRECISE: u8 = 3;
/// `PERF_TYPE_HARDWARE` and `PERF_TYPE_RAW`.
const HARDWARE: u32 = 0;
/// See [`HARDWARE`].
pub(super) const RAW: u32 = 4;
/// `PERF_COUNT_SW_CPU_CLOCK`.
const CPU_CLOCK: u64 = 0;
/// Software events by perf's names (`enum perf_sw_ids`).
pub(super) const SOFTWARE_EVENTS: [(&str, u64); 10] = [
    ("cpu-clock", CPU_CLOCK),
    ("task-clock", 1),
    ("page-faults", 2),
    ("faults", 2),
    ("context-switches", 3),
    ("cs", 3),
    ("cpu-migrations", 4),
    ("migrations", 4),
    ("minor-faults", 5),
    ("major-faults", 6),
];
/// Generic hardware events by perf's names (`enum perf_hw_id`).
pub(super) const HARDWARE_EVENTS: [(&str, u64); 9] = [
    ("cycles", 0),
    ("cpu-cycles", 0),
    ("instructions", 1),
    ("cache-references", 2),
    ("cache-misses", 3),
    ("branches", 4),
    ("branch-instructions", 4),
    ("branch-misses", 5),
    ("ref-cycles", 9),
];

/// perf's raw events: `r` and a hexadecimal config.
pub(super) fn raw(name: &str) -> Option<u64> {
    let digits = name.strip_prefix('r').filter(|d| !d.is_empty())?;
    u64::from_str_radix(digits, 16).ok()
}

/// The modifiers after the colon.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Modifiers {
    pub user_only: bool,
    pub kernel_only: bool,
    pub precise: u8,
    /// Less precise will do.
    pub any: bool,
}

impl Modifiers {
    /// `None`: it is none of perf's.
    pub fn parse(letters: &str) -> Option<Self> {
        let mut modifiers = Self::default();
        for letter in letters.chars() {
            match letter {
                'u' => modifiers.user_only = true,
                'k' => modifiers.kernel_only = true,
                'p' if modifiers.precise < PRECISE => modifiers.precise += 1,
                'P' => (modifiers.precise, modifiers.any) = (PRECISE, true),
                _ => return None,
            }
        }
        if modifiers.user_only && modifiers.kernel_only {
            (modifiers.user_only, modifiers.kernel_only) = (false, false);
        }
        Some(modifiers)
    }
}

/// Why no hardware event can be counted or sampled.
const NO_PMU: &str = "no core PMU";

const SAMPLED: &str = "sampled on ";
const NO_TREE: &str = "no tree per function: ";

/// A note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The CPU clock is sampled, as there is no core PMU.
    NoPmu,
    /// Another event than was asked for is sampled: which, and why.
    Sampled(String),
    /// Why there is no tree per function.
    NoTree(String),
    /// Any other.
    Other(String),
}

impl Note {
    /// The note that a session has as `text`.
    pub fn parse(text: &str) -> Self {
        let sampled = || text.strip_prefix(SAMPLED).map(|of| Self::Sampled(of.to_owned()));
        let no_tree = || text.strip_prefix(NO_TREE).map(|why| Self::NoTree(why.to_owned()));
        if text == Self::NoPmu.to_string() {
            return Self::NoPmu;
        }
        sampled().or_else(no_tree).unwrap_or_else(|| Self::Other(text.to_owned()))
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPmu => write!(f, "{SAMPLED}cpu-clock: {NO_PMU}"),
            Self::Sampled(of) => write!(f, "{SAMPLED}{of}"),
            Self::NoTree(why) => write!(f, "{NO_TREE}{why}"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl From<String> for Note {
    fn from(text: String) -> Self {
        Self::Other(text)
    }
}

impl From<&str> for Note {
    fn from(text: &str) -> Self {
        Self::Other(text.to_owned())
    }
}

/// Notes as words, for a session or a report.
pub(crate) fn words(notes: &[Note]) -> Vec<String> {
    notes.iter().map(Note::to_string).collect()
}

/// Why something cannot be sampled.
#[derive(Debug, Clone)]
pub(super) enum WhyNot {
    /// There is no core PMU.
    NoPmu,
    /// The machine lacks this, so that no hardware event can be sampled.
    Blocked(String),
    /// No table describes the processor.
    NoTable,
    /// No PMU counts for the cores of this table.
    NoCounters(String),
    /// The PMU cannot count an event of the table.
    Uncoded(Missing),
    /// A table has no event of this name: the table, and the name.
    NoEvent(String, String),
    /// An event, which the kernel refuses.
    Refused(String, Errno),
    /// Cycles cannot be sampled.
    NoCycles(Errno),
    /// Samples cannot hold counts.
    NoCounts(Errno),
    /// Level 1 of a table needs this many groups of counters.
    Groups(String, usize),
    /// No event is there to sample at.
    NothingToSample,
    /// No table says how to locate this node.
    Unlocatable(String),
    /// No event locates this node here, for the reason if one is known.
    NotLocated(String, Option<Box<WhyNot>>),
    /// No node of the tree can be located, for the reason if there is one of all.
    NoneLocated(Option<Box<WhyNot>>),
    /// The event that was named cannot be sampled.
    Named(Error),
}

impl WhyNot {
    /// The obstacle to all hardware events.
    pub fn no_hardware(blocked: Option<&Finding>) -> Self {
        blocked.map_or(Self::NoPmu, |finding| Self::Blocked(finding.what.clone()))
    }

    /// Whether that is because no hardware event can be sampled.
    pub fn is_no_hardware(&self) -> bool {
        match self {
            Self::NoPmu | Self::Blocked(_) => true,
            Self::NotLocated(_, Some(why)) | Self::NoneLocated(Some(why)) => why.is_no_hardware(),
            _ => false,
        }
    }
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPmu => f.write_str(NO_PMU),
            Self::Blocked(what) => f.write_str(what),
            Self::NoTable => f.write_str("no table describes this processor"),
            Self::NoCounters(table) => write!(f, "no PMU counts for {table}"),
            Self::Uncoded(why) => why.fmt(f),
            Self::NoEvent(table, name) => write!(f, "{table} has no event {name}"),
            Self::Refused(name, errno) => write!(f, "{name}: {}", errno.desc()),
            Self::NoCycles(errno) => write!(f, "the kernel refuses cycles ({})", errno.desc()),
            Self::NoCounts(errno) => {
                write!(f, "the kernel refuses to read counts at samples ({})", errno.desc())
            }
            Self::Groups(table, groups) => {
                write!(f, "level 1 of {table} needs {groups} groups of counters")
            }
            Self::NothingToSample => f.write_str("no event to sample"),
            Self::Unlocatable(node) => write!(f, "no event is known to locate {node}"),
            Self::NotLocated(node, None) => write!(f, "no event locates {node} here"),
            Self::NotLocated(node, Some(why)) => write!(f, "no event locates {node} here: {why}"),
            Self::NoneLocated(None) => f.write_str("no node of the tree can be located here"),
            Self::NoneLocated(Some(why)) => write!(f, "no node can be located: {why}"),
            Self::Named(error) => error.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifiers_are_perfs() {
        let parsed = |text| Modifiers::parse(text).map(|m| (m.user_only, m.kernel_only, m.precise));
        assert_eq!(parsed("u"), Some((true, false, 0)));
        assert_eq!(parsed("ppk"), Some((false, true, 2)));
        assert_eq!(parsed("uk"), Some((false, false, 0)));
        assert_eq!(parsed("P"), Some((false, false, 3)));
        assert_eq!((parsed("pppp"), parsed("x")), (None, None));
    }

    #[test]
    fn raw_events_are_hexadecimal() {
        assert_eq!(raw("r01c2"), Some(0x1c2));
        assert_eq!((raw("r"), raw("resource"), raw("01c2")), (None, None, None));
    }

    #[test]
    fn a_note_is_read_as_it_was_written() {
        for note in [
            Note::NoPmu,
            Note::Sampled("cycles: no event locates Memory_Bound here".to_owned()),
            Note::NoTree("the samples hold no counts".to_owned()),
            Note::Other("kernel mode is not sampled: perf_event_paranoid is 2".to_owned()),
        ] {
            assert_eq!(Note::parse(&note.to_string()), note);
        }
        // Sessions are read by later versions.
        assert_eq!(Note::NoPmu.to_string(), "sampled on cpu-clock: no core PMU");
        let tree = Note::parse("no tree per function: level 1 of zen3 needs 2 groups of counters");
        assert_eq!(tree, Note::NoTree("level 1 of zen3 needs 2 groups of counters".to_owned()));
    }
}
