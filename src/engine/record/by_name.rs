//! Events that are chosen for a purpose: those that a user names (of the tables, of the kernel, or raw), those that
//! locate nodes, and those that read the counts of level 1 for a tree of each function.

use super::chooser::{Chooser, HARDWARE_EVENTS, Modifiers, RAW, SOFTWARE_EVENTS, WhyNot, raw};
use nix::errno::Errno;
use pmu::machine::Encoding;
use pmu::perf::{code, software};
use pmu::sampling::{CountedEvent, Extra, SampledEvent, reads_inherited};
use tma::schedule::{self, Budget, to_level};
use tma::tables::select;
use tma::{Error, ErrorKind, Result};

/// Events, or why there are none here.
type Found = std::result::Result<Vec<SampledEvent>, WhyNot>;

impl Chooser<'_> {
    /// The event that a user has named.
    ///
    /// # Errors
    /// There is no such event or modifier, or it cannot be sampled here.
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
                self.notes.push(note.into());
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
    fn known(&self, base: &str) -> Found {
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

    fn unknown(&self, base: &str) -> Error {
        let tables = self.cores.iter().flat_map(|c| &c.table.events).map(|e| e.name.as_str());
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

/// Most events that locate the nodes of a tree: each takes a counter from what is counted.
const MOST: usize = 4;

impl Chooser<'_> {
    /// The events that locate a node, one for each kind of core; the inner error says why there
    /// are none here.
    ///
    /// # Errors
    /// No table has such a node.
    pub fn for_node(&mut self, node: &str) -> Result<Found> {
        let mut events = Vec::new();
        let mut why = WhyNot::Unlocatable(node.to_owned());
        let mut unknown = None;
        let mut is_known = self.cores.is_empty();
        for core in self.cores {
            let nodes = match select(&core.table, node) {
                Ok(nodes) => nodes,
                Err(error) => {
                    unknown = Some(error);
                    continue;
                }
            };
            is_known = true;
            let names = nodes.iter().flat_map(|n| &core.table.nodes[usize::from(*n)].spec.locate);
            for name in names {
                match self.of_table(core, name).map(|e| e.map(|e| self.settled(e))) {
                    Some(Ok(Ok(event))) => {
                        events.push(event);
                        break;
                    }
                    Some(Ok(Err(errno))) => why = WhyNot::Refused(name.clone(), errno),
                    Some(Err(reason)) => why = reason,
                    None => why = WhyNot::NoEvent(core.table.name.clone(), name.clone()),
                }
            }
        }
        match unknown {
            Some(error) if !is_known => Err(error),
            _ if events.is_empty() => {
                Ok(Err(WhyNot::NotLocated(node.to_owned(), Some(why.into()))))
            }
            _ => Ok(Ok(events)),
        }
    }

    /// The events that `name` means: a node's, or an event by its name.
    ///
    /// # Errors
    /// There is neither such a node nor such an event.
    pub fn beside(&mut self, name: &str) -> Result<Found> {
        match self.for_node(name) {
            Ok(found) => Ok(found),
            Err(unknown) => match self.by_name(name) {
                Ok(events) => Ok(Ok(events)),
                Err(error) if error.kind() == ErrorKind::Usage => Err(unknown),
                Err(error) => Ok(Err(WhyNot::Named(error))),
            },
        }
    }

    /// The events that locate the nodes of the tree that is counted, upper levels first.
    pub fn for_tree(&mut self, why_not: &mut Vec<WhyNot>) -> Vec<SampledEvent> {
        if let Some(why) = self.no_pmu() {
            why_not.push(WhyNot::NoneLocated(Some(why.into())));
            return Vec::new();
        }
        let mut events: Vec<SampledEvent> = Vec::new();
        let mut left_out = Vec::new();
        for core in self.cores {
            let tree = core.chosen.selection.tree.iter();
            let mut nodes: Vec<_> = tree.map(|n| &core.table.nodes[usize::from(*n)]).collect();
            nodes.sort_by_key(|node| node.level);
            let mut here = 0;
            for node in nodes.iter().filter(|node| !node.spec.locate.is_empty()) {
                let settled = node.spec.locate.iter().find_map(|name| {
                    let event = self.of_table(core, name)?.ok()?;
                    self.settled(event).ok()
                });
                match settled {
                    None => why_not.push(WhyNot::NotLocated(node.id.to_string(), None)),
                    Some(event) if events.contains(&event) => {}
                    Some(_) if here == MOST => left_out.push(node.id.as_str()),
                    Some(event) => {
                        here += 1;
                        events.push(event);
                    }
                }
            }
        }
        if !left_out.is_empty() {
            let list = left_out.join(", ");
            let note = format!(
                "not located, to leave counters to the tree: {list}; --by NODE locates one"
            );
            self.notes.push(note.into());
        }
        if events.is_empty() && why_not.len() > 1 {
            // One reason for all of them.
            why_not.clear();
            why_not.push(WhyNot::NoneLocated(None));
        }
        events
    }
}

impl Chooser<'_> {
    /// Samples of cycles (else of the CPU clock) that read the counts of level 1, for each kind of core; else why
    /// there are none here.
    ///
    /// # Errors
    /// That reason.
    pub fn with_counts(&mut self) -> Found {
        if let Some(why) = self.no_pmu() {
            return Err(why);
        }
        if self.cores.is_empty() {
            return Err(WhyNot::NoTable);
        }
        (0..self.cores.len()).map(|number| self.core_with_counts(number)).collect()
    }

    fn core_with_counts(&mut self, number: usize) -> std::result::Result<SampledEvent, WhyNot> {
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
            group.events.iter().map(counted).collect::<std::result::Result<_, WhyNot>>()?;
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
