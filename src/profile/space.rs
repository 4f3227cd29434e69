//! Address spaces: which file lies at an address of a process, at the time of a sample.

use super::module::Modules;
use super::record::Record;

/// A place in a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Which of [`Modules`].
    pub module: usize,
    /// Address as in the ELF file (p_vaddr); of modules without a file the address itself.
    pub address: u64,
}

/// The address spaces of all processes of a recording, as records come in.
#[derive(Debug, Default)]
pub struct Spaces {
    /// Every module that was mapped.
    pub modules: Modules,
}

impl Spaces {
    /// Takes a record that changes a space (others change nothing).
    pub fn apply(&mut self, record: &Record) {
        let _ = record;
    }

    /// Where `ip` of process `pid` lies now; `user`: by the sample's header.
    pub fn place(&mut self, pid: u32, ip: u64, user: Option<bool>) -> Option<Place> {
        let _ = (pid, ip, user);
        None
    }

    /// Name of a thread now.
    pub fn thread_name(&self, pid: u32, tid: u32) -> Option<&str> {
        let _ = (pid, tid);
        None
    }
}
