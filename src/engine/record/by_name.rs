//! Events that a user has named: of the tables, of the kernel, or raw.

use super::chooser::Chooser;
use super::names::{HARDWARE_EVENTS, Modifiers, RAW, SOFTWARE_EVENTS, raw};
use super::why_not::WhyNot;
use nix::errno::Errno;
use pmu::machine::Encoding;
use pmu::perf::software;
use pmu::sampling::SampledEvent;
use tma::tables::Table;
use tma::{Error, Result};

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
    fn known(&self, base: &str) -> std::result::Result<Vec<SampledEvent>, WhyNot> {
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
