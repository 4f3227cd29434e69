//! One table against what a core shows.

use super::fact::Fact;
use crate::cpuid::{CacheLevel, Cpuid, Feature, Group};
use crate::tables::{Head, Signature};

/// A table, weighed.
pub(super) struct Weighed {
    pub name: String,
    pub head: Head,
    /// Whether family, model and stepping are its own, as closely as any table's.
    pub is_claimed: bool,
    /// Facts that are there and that its core cannot have.
    pub against: Vec<Fact>,
    /// Facts of its core that are not there.
    pub missing: Vec<Fact>,
    /// Facts that are there, that its core is not known to have, and that only some products or firmware show.
    pub odd: Vec<Fact>,
    /// How many things its core has were looked for.
    pub known: usize,
    /// Shapes and leaves that agree.
    pub agrees: Vec<Fact>,
}

/// How to read what a core shows.
#[derive(Clone, Copy)]
pub(super) struct View {
    /// A hypervisor says that it is there: it hides features, and may limit leaves.
    pub is_virtual: bool,
    /// Whether the shapes of caches are the silicon's.
    pub shapes: bool,
}

impl Weighed {
    /// Weighs a table, whose head this is.
    pub fn of(name: &str, head: Head, is_claimed: bool, cpuid: &Cpuid, view: View) -> Self {
        let mut weighed = Self {
            name: name.to_owned(),
            is_claimed,
            against: Vec::new(),
            missing: Vec::new(),
            odd: Vec::new(),
            known: 0,
            agrees: Vec::new(),
            head,
        };
        if let Some(signature) = weighed.head.signature.clone() {
            weighed.features(&signature, cpuid, view);
            weighed.shapes(&signature, cpuid, view);
            weighed.leaves(&signature, cpuid, view);
        }
        weighed
    }

    fn features(&mut self, signature: &Signature, cpuid: &Cpuid, view: View) {
        for feature in signature.never.iter().filter(|f| cpuid.has(**f) == Some(true)) {
            match feature.group() {
                Group::Host => self.odd.push(Fact::Has(*feature)),
                _ => self.against.push(Fact::Has(*feature)),
            }
        }
        for group in [Group::Avx, Group::Avx512, Group::Amx, Group::Single, Group::Host] {
            let is_hideable = group == Group::Host && view.is_virtual;
            let of = signature.has.iter().filter(|f| f.group() == group);
            let (there, gone): (Vec<Feature>, Vec<Feature>) =
                of.filter(|f| cpuid.has(**f).is_some()).partition(|f| cpuid.has(**f) == Some(true));
            let together = !matches!(group, Group::Single | Group::Host);
            self.known += there.len();
            match gone.len() {
                0 => {}
                _ if is_hideable => {}
                // Switched off by firmware, kernel or hypervisor: one decision.
                _ if together && there.is_empty() => {
                    self.known += 1;
                    self.missing.push(Fact::Without(group));
                }
                count => {
                    self.known += count;
                    self.missing.extend(gone.into_iter().map(Fact::Lacks));
                }
            }
        }
    }

    fn shapes(&mut self, signature: &Signature, cpuid: &Cpuid, view: View) {
        for level in CacheLevel::ALL {
            let stated = signature.shapes(level);
            let Some(shape) = cpuid.cache(level).filter(|_| view.shapes && !stated.is_empty())
            else {
                continue;
            };
            let fact = Fact::Cache(level, shape);
            if stated.contains(&shape) {
                self.agrees.push(fact);
            } else {
                self.against.push(fact);
            }
        }
    }

    fn leaves(&mut self, signature: &Signature, cpuid: &Cpuid, view: View) {
        if let Some(core) = cpuid.core_type() {
            let kind = signature.core_type.is_none_or(|kind| kind == core.kind);
            let native = signature.native_model.is_none_or(|native| native == core.native);
            match (signature.core_type.or(signature.native_model), kind && native) {
                (None, _) => {}
                (Some(_), true) => self.agrees.push(Fact::Core(core)),
                (Some(_), false) => self.against.push(Fact::Core(core)),
            }
        }
        // Hypervisors raise and limit the highest leaf as they like.
        if let (Some(stated), Some(highest), false) =
            (signature.highest_leaf, cpuid.highest_leaf(), view.is_virtual)
        {
            let fact = Fact::HighestLeaf(highest);
            self.known += 1;
            match highest.cmp(&stated) {
                std::cmp::Ordering::Equal => self.agrees.push(fact),
                // Firmware may limit it, not raise it.
                std::cmp::Ordering::Less => self.missing.push(fact),
                std::cmp::Ordering::Greater => self.odd.push(fact),
            }
        }
    }

    /// How much speaks against it, of what others may have hidden or added. A claimed table's products
    /// may differ in what firmware shows.
    pub fn doubts(&self) -> usize {
        self.missing.len() + if self.is_claimed { 0 } else { self.odd.len() }
    }

    /// Whether so little is missing that it can be this core.
    pub fn is_possible(&self) -> bool {
        self.against.is_empty() && self.doubts() * MOST_MISSING <= self.known
    }
}

/// At most a quarter of what a core has may be hidden: below that, nothing says that it is this one.
const MOST_MISSING: usize = 4;
