//! Mapped jitdumps, and the code at an address of their processes.

use super::compiled::{MOST, MOST_BYTES, Process};
use super::{AddressSpaces, ModuleAddress, Region};
use crate::jitdump::{loads, open};
use crate::module::{Module, ModuleKind};
use crate::ranges::RangeMap;
use std::cmp::Reverse;
use std::fmt;
use std::io::ErrorKind;

impl AddressSpaces {
    /// To be called with the time of each sample before its addresses are resolved. Returns whether code was
    /// loaded since.
    pub fn advance(&mut self, time: Option<u64>) -> bool {
        let Some(time) = time.filter(|now| !self.compiled.is_later(*now)) else { return false };
        let compiled = &mut self.compiled;
        while !compiled.is_later(time) {
            let Some(Reverse((_, pid))) = compiled.next.pop() else { break };
            if let Some(process) = compiled.processes.get_mut(&pid) {
                process.advance(time);
                compiled.next.extend(process.next().map(|next| Reverse((next, pid))));
            }
        }
        true
    }

    /// A process has mapped a jitdump.
    pub(super) fn map_dump(&mut self, pid: u32, path: &str) {
        if self.compiled.processes.get(&pid).is_some_and(|known| known.path == path) {
            return;
        }
        let file = match open(&self.search, path, pid) {
            Ok(file) => file,
            // The perf map file may be there.
            Err(error) if error.kind() == ErrorKind::NotFound => return,
            Err(error) => return self.unreadable(path, error),
        };
        self.compiled.bytes += file.metadata().map_or(0, |found| found.len());
        if self.compiled.read >= MOST || self.compiled.bytes > MOST_BYTES {
            return self.unreadable(path, "the recording names too many of them");
        }
        let (loads, has_clock) = match loads(file, MOST - self.compiled.read) {
            Ok(found) => found,
            Err(reason) => return self.unreadable(path, reason),
        };
        self.compiled.read += loads.len();
        if self.compiled.read >= MOST {
            self.unreadable(path, format_args!("there are more than {MOST}"));
        }
        let module = self.modules.number(Module {
            path: path.to_owned(),
            kind: ModuleKind::Jitdump,
            pid: Some(pid),
            ..Module::default()
        });
        let (code, path) = (RangeMap::default(), path.to_owned());
        let mut process = Process { path, code, module, later: loads.into_iter() };
        if !(has_clock && self.compiled.is_monotonic) {
            process.advance(u64::MAX);
        }
        self.compiled.next.extend(process.next().map(|next| Reverse((next, pid))));
        self.compiled.processes.insert(pid, process);
    }

    fn unreadable(&mut self, path: &str, reason: impl fmt::Display) {
        let note = format!("functions of {} are missing: {reason}", tma::text::name(path));
        // As many as a reader looks at.
        if self.compiled.notes.len() < 8 && !self.compiled.notes.contains(&note) {
            self.compiled.notes.push(note);
        }
    }

    /// The compiled code at an address of user space; `region` is what is mapped there.
    pub(super) fn compiled_at(
        &self,
        pid: u32,
        ip: u64,
        user: Option<bool>,
        region: Option<&Region>,
    ) -> Option<ModuleAddress> {
        if self.compiled.processes.is_empty() || user == Some(false) {
            return None;
        }
        let kind = region.and_then(|region| self.modules.all.get(region.module)).map(|m| m.kind);
        if kind.is_some_and(ModuleKind::is_file_like) {
            return None;
        }
        let code = self.compiled.processes.get(&pid)?.code.get(ip)?;
        let address = (ip - code.start).wrapping_add(code.offset);
        Some(ModuleAddress { module: code.module, address })
    }
}
