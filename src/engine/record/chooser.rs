//! Events to sample on the cores of this machine, as the kernel takes them.

use super::names::{CPU_CLOCK, HARDWARE, PRECISE};
use super::note::Note;
use super::why_not::WhyNot;
use crate::topdown::live::CountedCore;
use nix::errno::Errno;
use pmu::machine::{Encoding, Finding, Machine};
use pmu::perf::{Rate, code, software};
use pmu::sampling::{Ability, Extra, SampledEvent, with_supported_precision};

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
