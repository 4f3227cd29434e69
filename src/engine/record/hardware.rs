//! Records that only hardware makes: the last branches before a sample (LBR), loads with their address, origin and
//! latency (PEBS of Intel, IBS of AMD).

use super::chooser::{Chooser, PRECISE, WhyNot};
use nix::errno::Errno;
use pmu::machine::{Encoding, Pmu};
use pmu::perf::Rate;
use pmu::sampling::{CountedEvent, Extra, SampledEvent};
use std::fmt::Display;
use tma::{Error, Result};

/// Taken branches between samples of branch stacks. Fixed: a frequency would sample slow code more
/// often than it is executed. A prime: no loop's branches divide it.
const BRANCH_PERIOD: u64 = 400_009;
/// The event of taken branches in Intel's tables.
const NEAR_TAKEN: &str = "BR_INST_RETIRED.NEAR_TAKEN";
/// `PERF_COUNT_HW_BRANCH_INSTRUCTIONS`.
const BRANCHES: u64 = 4;

impl Chooser<'_> {
    /// `events`, or taken branches if there are none, with the last branches taken in user mode.
    ///
    /// # Errors
    /// The hardware or the kernel records no branches here.
    pub fn with_branches(
        &mut self,
        events: Vec<SampledEvent>,
        period: Option<u64>,
    ) -> Result<Vec<SampledEvent>> {
        if let Some(why) = self.no_pmu() {
            return Err(no_branches(why));
        }
        let events = if events.is_empty() {
            let rate = Rate::Period(period.unwrap_or(BRANCH_PERIOD));
            // In user mode only, as the stacks are: samples in the kernel would repeat the last stack before.
            let in_user_mode = |e: SampledEvent| {
                let encoding = Encoding { user_only: true, ..e.encoding };
                SampledEvent { rate, encoding, ..e }
            };
            self.taken_branches().into_iter().map(in_user_mode).collect()
        } else {
            events
        };
        let with_stack = |event| {
            let event = SampledEvent { extra: Extra::BRANCHES, ..event };
            self.settled(event).map_err(|errno| no_branches(why_no_branches(errno)))
        };
        events.into_iter().map(with_stack).collect()
    }

    /// These events with the calls that have not returned.
    ///
    /// # Errors
    /// The hardware or the kernel keeps none here.
    pub fn with_calls(&mut self, events: Vec<SampledEvent>) -> Result<Vec<SampledEvent>> {
        if let Some(why) = self.no_pmu() {
            return Err(no_calls(why));
        }
        let with_stack = |event: SampledEvent| {
            let event = SampledEvent { extra: event.extra.with_calls(), ..event };
            self.settled(event).map_err(|errno| no_calls(why_no_branches(errno)))
        };
        events.into_iter().map(with_stack).collect()
    }

    /// The events of taken branches, one for each kind of core; else of all branches.
    fn taken_branches(&self) -> Vec<SampledEvent> {
        let mut events: Vec<SampledEvent> =
            self.cores.iter().filter_map(|core| self.of_table(core, NEAR_TAKEN)?.ok()).collect();
        // Zen 3 records branches with this event only.
        let brs = |pmu: &Pmu| Some((pmu.cpus.clone(), pmu.kernel_event("branch-brs", &[])?));
        if events.is_empty() {
            events.extend(self.machine.core_pmus().filter_map(brs).map(|(cpus, encoding)| {
                SampledEvent { cpus, ..self.event("branch-brs", encoding, 0) }
            }));
        }
        if events.is_empty() {
            events = self.hardware("branches", BRANCHES, PRECISE);
        }
        events
    }

    /// The events that sample loads of at least `least` cycles, one for each kind of core.
    ///
    /// # Errors
    /// The hardware or the kernel samples no loads here.
    pub fn loads(&mut self, least: u64) -> Result<Vec<SampledEvent>> {
        if let Some(why) = self.no_pmu() {
            return Err(no_loads(why));
        }
        let mut events: Vec<SampledEvent> =
            self.machine.core_pmus().filter_map(|pmu| self.mem_loads(pmu, least)).collect();
        if events.is_empty() {
            events.extend(self.ibs(least));
        }
        if events.is_empty() {
            return Err(no_loads("its PMU has neither mem-loads (Intel) nor ibs_op (AMD)"));
        }
        events.into_iter().map(|event| self.settled_load(event)).collect()
    }

    /// Intel's event of loads with their latency. Its threshold is at least 3 (Intel's manual, volume 3B,
    /// `MSR_PEBS_LD_LAT_THRESHOLD`).
    fn mem_loads(&self, pmu: &Pmu, least: u64) -> Option<SampledEvent> {
        let encoding = pmu.kernel_event("mem-loads", &[("ldlat", least.max(3))])?;
        let name = format!("{}/mem-loads,ldlat={}/", pmu.name, least.max(3));
        let aux = pmu.kernel_event("mem-loads-aux", &[]);
        let group = aux.map(|encoding| CountedEvent { name: "mem-loads-aux".into(), encoding });
        let group = group.into_iter().collect();
        let (cpus, extra) = (pmu.cpus.clone(), Extra::LOADS);
        Some(SampledEvent { cpus, extra, group, ..self.event(&name, encoding, PRECISE) })
    }

    /// AMD's sampling of µops, those that load among them (Linux, `arch/x86/events/amd/ibs.c`).
    fn ibs(&mut self, least: u64) -> Option<SampledEvent> {
        let pmu = self.machine.pmu("ibs_op")?;
        // By µops, not by cycles: slow code is not sampled more often than it is executed.
        let mut fields = vec![("cnt_ctl", 1)];
        if self.ability.user_only && pmu.formats.contains_key("swfilt") {
            fields.push(("swfilt", 1));
        }
        let mut name = "ibs_op/cnt_ctl=1/".to_owned();
        if least > 0 {
            let threshold = least.clamp(128, 2048);
            match pmu.formats.contains_key("ldlat") {
                true => {
                    fields.push(("ldlat", threshold));
                    name = format!("ibs_op/cnt_ctl=1,ldlat={threshold}/");
                    if threshold != least {
                        let note =
                            format!("IBS filters loads by latencies of 128 to 2048: {threshold}");
                        self.notes.push(note.into());
                    }
                }
                false => self.notes.push(
                    "this processor or kernel cannot filter loads by latency: all are sampled"
                        .into(),
                ),
            }
        }
        let encoding: Encoding = pmu.encoding(fields)?;
        let mut event = SampledEvent { extra: Extra::LOADS, ..self.event(&name, encoding, 0) };
        if let Rate::Period(period) = event.rate {
            // The hardware's counter has no lower four bits.
            event.rate = Rate::Period((period & !15).max(16));
        }
        Some(event)
    }

    /// A load event as the kernel accepts it: with the latency in three parts or in one.
    fn settled_load(&self, event: SampledEvent) -> Result<SampledEvent> {
        let older = SampledEvent { extra: Extra::LOADS_BEFORE_5_12, ..event.clone() };
        let (name, precise) = (event.name.clone(), event.precise > 0);
        let settled = self
            .settled(event)
            .or_else(|_| self.settled(older))
            .map_err(|errno| no_loads(format!("the kernel refuses {name} ({})", errno.desc())))?;
        match precise && settled.precise == 0 {
            true => Err(no_loads(format!("{name} cannot be sampled precisely"))),
            false => Ok(settled),
        }
    }

    /// Why no hardware event can be sampled.
    pub(super) fn no_pmu(&self) -> Option<WhyNot> {
        match self.machine.core_pmus().next() {
            None => Some(WhyNot::NoPmu),
            Some(_) => self.blocked.map(|finding| WhyNot::no_hardware(Some(finding))),
        }
    }
}

fn why_no_branches(errno: Errno) -> String {
    match errno {
        Errno::EOPNOTSUPP => {
            "this processor, or its kernel, has no branch records with this event".into()
        }
        errno => format!("the kernel refuses them ({})", errno.desc()),
    }
}

fn no_branches(why: impl Display) -> Error {
    Error::not_possible("branch stacks cannot be recorded here")
        .because(why)
        .hint("`tdtool count --branches -- COMMAND` records branches with probes, without a PMU")
}

fn no_calls(why: impl Display) -> Error {
    Error::not_possible("call chains cannot be recorded by branch records here")
        .because(why)
        .hint("--call-graph dwarf needs no PMU; --call-graph fp neither, but frame pointers")
}

fn no_loads(why: impl Display) -> Error {
    Error::not_possible("loads cannot be sampled here")
        .because(why)
        .hint("`tdtool count --loads -- COMMAND` measures loads with probes, without a PMU")
}
