//! Verifies which layers hold, by the worker's mailbox and the kernel's account of the process. The mailbox is
//! trusted only before a block has run.

use super::Worker;
use crate::layers::Layer;
use crate::sandbox::layout::{self as at, mail};
use crate::sandbox::restraints::Restraint;
use std::fmt;

const FILTER: Layer = Layer::Other("system-call filter");
const MEMORY: Layer = Layer::Other("no memory of tdtool");
const NAMESPACES: Layer = Layer::Other("namespaces of its own");

/// A layer that does not hold, and without which blocks never run.
pub(super) enum Unprotected {
    /// The kernel's mode of the system-call filter.
    Filter(String),
    /// A restraint, and why it does not hold.
    Restraint(Layer, String),
}

impl fmt::Display for Unprotected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filter(mode) => {
                write!(f, "the system-call filter is not in force (Seccomp: {mode})")
            }
            Self::Restraint(layer, why) => write!(f, "{layer}: {why}"),
        }
    }
}

impl Worker {
    /// Enters the layers.
    ///
    /// # Errors
    /// A layer does not hold without which blocks never run.
    pub(super) fn verify_layers(&mut self, without: Option<String>) -> Result<(), Unprotected> {
        // Where there is no account to read, the kernel's answer to the worker stands.
        if let Some(mode) = self.account("Seccomp:").filter(|mode| mode != "2") {
            return Err(Unprotected::Filter(mode));
        }
        let mut layers = std::mem::take(&mut self.layers);
        layers.enter(FILTER, None);
        let left = self.get32(at::MAIL + mail::LEFT_MAPPED);
        let sealed = || format!("{left} of its mappings are sealed and stay (system pages)");
        layers.enter(MEMORY, (left > 0).then(sealed));
        let without = without.or_else(|| {
            let ids = self.account("NSpid:")?;
            (ids.split_whitespace().count() < 2).then(|| format!("the process has one id, {ids}"))
        });
        layers.enter(NAMESPACES, without);
        for (restraint, layer) in Restraint::ALL {
            let why_not = why_not(self.get32(restraint.place()) as i32);
            if let (Restraint::EndsWithParent | Restraint::NoNewPrivileges, Some(why)) =
                (restraint, &why_not)
            {
                return Err(Unprotected::Restraint(layer, why.clone()));
            }
            layers.enter(layer, why_not);
        }
        self.layers = layers;
        Ok(())
    }
}

/// Why a restraint does not hold, by what the worker entered.
fn why_not(outcome: i32) -> Option<String> {
    match outcome {
        mail::HELD => None,
        error if error < 0 => Some(std::io::Error::from_raw_os_error(-error).to_string()),
        mail::READS_OTHERWISE => Some("set without an error, and reads back otherwise".to_owned()),
        _ => Some("the worker has not tried".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_read_back_holds() {
        assert_eq!(why_not(mail::HELD), None);
        assert!(why_not(-libc::EPERM).unwrap().contains("not permitted"));
        assert!(why_not(mail::READS_OTHERWISE).unwrap().contains("reads back"));
        assert!(why_not(0).is_some(), "a worker that entered nothing holds nothing");
    }

    /// All layers as the kernel accounts for them from outside, also the limits.
    #[test]
    fn the_kernel_s_account_of_a_worker_agrees() {
        let worker = Worker::start(None, false, crate::sandbox::random()).unwrap();
        let layers = worker.layers();
        let file = |name: &str| {
            std::fs::read_to_string(format!("/proc/{}/{name}", worker.process())).unwrap()
        };
        assert_eq!(worker.account("NoNewPrivs:").as_deref(), Some("1"));
        assert_eq!(worker.account("Seccomp:").as_deref(), Some("2"));
        // All but SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGKILL, SIGSEGV and SIGSTOP.
        assert_eq!(worker.account("SigBlk:").as_deref(), Some("fffffffffffbfa27"));
        let held = |layer: Layer| layers.held.contains(&layer);
        let without = layers.missing.iter().any(|m| m.starts_with(&NAMESPACES.to_string()));
        assert_eq!(held(NAMESPACES), !without);
        let limits = file("limits");
        let most = |name: &str| -> u64 {
            let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap_or(u64::MAX)
        };
        for (name, resource, limit) in [
            ("Max core file size", "core files", 1),
            ("Max file size", "file sizes", 0),
            ("Max open files", "open files", 0),
            ("Max processes", "processes", 0),
            ("Max locked memory", "locked memory", 0),
            ("Max stack size", "the stack", 0),
            ("Max address space", "memory", 16 << 20),
        ] {
            assert_eq!(most(name) <= limit, held(Layer::Limit(resource)), "{name}: {limits}");
        }
        let all = 3 + Restraint::ALL.len();
        assert_eq!(layers.held.len() + layers.missing.len(), all, "{layers:?}");
    }

    #[test]
    fn a_worker_that_may_be_inspected_says_so() {
        let worker = Worker::start(None, true, crate::sandbox::random()).unwrap();
        assert!(worker.layers().missing.iter().any(|m| m.starts_with("not inspectable")));
    }
}
