//! Samples that read the counts of level 1: for a tree of each function.

use super::chooser::Chooser;
use super::why_not::WhyNot;
use pmu::perf::code;
use pmu::sampling::{CountedEvent, Extra, SampledEvent, reads_inherited};
use tma::schedule::{self, Budget, to_level};

impl Chooser<'_> {
    /// Samples of cycles (else of the CPU clock) that read the counts of level 1, for each kind of core; else why
    /// there are none here.
    ///
    /// # Errors
    /// That reason.
    pub fn with_counts(&mut self) -> Result<Vec<SampledEvent>, WhyNot> {
        if let Some(why) = self.no_pmu() {
            return Err(why);
        }
        let mut events = Vec::new();
        for number in 0..self.cores.len() {
            events.push(self.core_with_counts(number)?);
        }
        match events.is_empty() {
            true => Err(WhyNot::NoTable),
            false => Ok(events),
        }
    }

    fn core_with_counts(&mut self, number: usize) -> Result<SampledEvent, WhyNot> {
        let core = &self.cores[number];
        let table = &core.table;
        let pmu = core.pmu.as_ref().and_then(|name| self.machine.pmu(name));
        let pmu = pmu.ok_or_else(|| WhyNot::NoCounters(table.name.clone()))?;
        // A thread's own slots: those of both threads of a core cannot be attributed to functions.
        let budget = Budget::of(table, false, self.machine.kernel.nmi_watchdog == Some(true));
        let plan = schedule::plan(table, &to_level(table, 1), false, &budget);
        let [group] = plan.groups.as_slice() else {
            return Err(WhyNot::Groups(table.name.clone(), plan.groups.len()));
        };
        let counted = |id: &tma::tables::EventId| {
            let coded = code(table, *id, pmu, false).map_err(WhyNot::Uncoded)?;
            let name = table.events[usize::from(*id)].name.clone();
            Ok(CountedEvent { name, encoding: coded.encoding })
        };
        let group: Vec<CountedEvent> =
            group.events.iter().map(counted).collect::<Result<_, WhyNot>>()?;
        let (cpus, name) = (pmu.cpus.clone(), pmu.name.clone());
        let cycles = self.hardware("cycles", 0, 0).into_iter();
        let cycles = cycles.filter(|event| event.cpus.is_none() || event.name.starts_with(&name));
        let clock = self.clock();
        let mut refused = WhyNot::NothingToSample;
        for time in cycles.chain([clock]) {
            let event = SampledEvent {
                group: group.clone(),
                extra: Extra::COUNTS,
                cpus: cpus.clone(),
                ..time
            };
            match self.settled(event) {
                Ok(event) => return Ok(self.for_children(event)),
                Err(errno) => refused = WhyNot::NoCounts(errno),
            }
        }
        Err(refused)
    }

    /// The event for children and new threads too, where the kernel can.
    fn for_children(&mut self, event: SampledEvent) -> SampledEvent {
        let inherits = reads_inherited(&event, self.ability.user_only);
        if !inherits {
            let note = "the tree per function is of the threads there were at the start: this kernel cannot read \
                        counts of children at samples (Linux 6.13 can)";
            self.notes.push(note.into());
        }
        SampledEvent { inherits, ..event }
    }
}
