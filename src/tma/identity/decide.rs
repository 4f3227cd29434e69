//! Weighs each table by itself against what a core shows.

use super::{By, Claim, Contradiction, Fact, Identity};
use crate::cpuid::{CacheLevel, Cpuid, Feature, Group};
use crate::tables::{CoreKind, Head, Library, Shared, Signature};
use crate::{Cache, Result};

/// Features that a hypervisor may hide beyond those that another candidate needs hidden.
const HIDDEN_MORE: usize = 2;
/// Minimum number of known facts of a core for features alone to name it.
const LEAST_KNOWN: usize = 4;
/// Features that are named as evidence.
const NAMED: usize = 12;

/// Which table describes the core that answers so, by everything that it says.
pub fn identify(cpuid: &Cpuid, library: &Library) -> Result<Identity> {
    let weighed = weigh(cpuid, library)?;
    let claimed = claim(cpuid, &weighed);
    let mut identity = Identity { claimed, is_virtual: cpuid.is_virtual(), ..Identity::default() };
    let left = remaining(&weighed, cpuid);
    let (chosen, by) = choose(&weighed, &left, cpuid);
    if let Some(chosen) = chosen {
        identity.table = Some(chosen.name.clone());
        identity.core = chosen.head.core;
        identity.by = by;
        if by == By::Model && identity.is_virtual {
            identity.others =
                left.iter().filter(|w| !w.is_claimed).map(|w| w.name.clone()).collect();
            identity.others_differ = differing(&identity.others, &chosen.name, library)?;
        }
    } else {
        identity.candidates = left.iter().map(|w| w.name.clone()).collect();
    }
    explain(&mut identity, chosen, &left, &weighed, cpuid);
    Ok(identity)
}

/// The tables in `others` whose core facts differ from those of `chosen`.
fn differing(others: &[String], chosen: &str, library: &Library) -> Result<Vec<String>> {
    let stated = |name: &str| Shared::of(library, &[name.to_owned()]);
    let of_chosen = if others.is_empty() { None } else { stated(chosen)? };
    let mut differ = Vec::new();
    for other in others {
        let is_alike = match (&of_chosen, stated(other)?) {
            (Some(one), Some(other)) => one.states_as(&other),
            _ => false,
        };
        differ.extend((!is_alike).then(|| other.clone()));
    }
    Ok(differ)
}

/// All tables of the vendor that can be weighed or are claimed.
fn weigh(cpuid: &Cpuid, library: &Library) -> Result<Vec<Weighed>> {
    let cpu = cpuid.cpu();
    let mut heads: Vec<(String, Head)> = Vec::new();
    for name in library.names() {
        let head = library.head(name, &cpu)?;
        if head.vendor == cpu.vendor && (head.rank.is_some() || head.signature.is_some()) {
            heads.push((name.to_owned(), head));
        }
    }
    let best = heads.iter().filter_map(|(_, head)| head.rank).max();
    let view = View { is_virtual: cpuid.is_virtual(), shapes: believes_shapes(cpuid, &heads) };
    let weigh = |(name, head): (String, Head)| {
        let is_claimed = best.is_some() && head.rank == best;
        Weighed::of(&name, head, is_claimed, cpuid, view)
    };
    Ok(heads.into_iter().map(weigh).collect())
}

/// L1D, L1I and L2.
type Shapes = [Option<Cache>; 3];

/// The caches that QEMU shows instead of the processor's, where it is not asked for those
/// (target/i386/cpu.c, `legacy_l1d_cache` to `legacy_l2_cache`).
const fn emulated(l1: (usize, usize), l2: (usize, usize)) -> Shapes {
    let l1 = Some(Cache { ways: l1.0, sets: l1.1 });
    [l1, l1, Some(Cache { ways: l2.0, sets: l2.1 })]
}
const EMULATED: [Shapes; 2] = [emulated((8, 64), (16, 4096)), emulated((2, 512), (16, 512))];

/// Whether the shapes of caches can be the silicon's: not those of an emulator, and, below a
/// hypervisor, together those of a known core.
fn believes_shapes(cpuid: &Cpuid, heads: &[(String, Head)]) -> bool {
    let seen = CacheLevel::ALL.map(|level| cpuid.cache(level));
    let is_of = |head: &Head| {
        let Some(signature) = &head.signature else { return false };
        let fits = |(level, shape): (CacheLevel, Option<Cache>)| {
            shape.is_none_or(|shape| signature.shapes(level).contains(&shape))
        };
        CacheLevel::ALL.into_iter().zip(seen).all(fits)
    };
    if cpuid.is_virtual() {
        return heads.iter().any(|(_, head)| is_of(head));
    }
    !EMULATED.contains(&seen)
}

fn claim(cpuid: &Cpuid, weighed: &[Weighed]) -> Claim {
    let cpu = cpuid.cpu();
    let tables = weighed.iter().filter(|w| w.is_claimed).map(|w| w.name.clone()).collect();
    Claim {
        vendor: cpu.vendor,
        family: cpu.family,
        model: cpu.model,
        stepping: cpu.stepping,
        brand: cpu.name,
        tables,
    }
}

/// The tables that nothing contradicts, and that need no more hidden than others do.
fn remaining<'a>(weighed: &'a [Weighed], cpuid: &Cpuid) -> Vec<&'a Weighed> {
    let is_weighed = |w: &&Weighed| w.is_claimed || w.known >= LEAST_KNOWN;
    let mut left: Vec<&Weighed> =
        weighed.iter().filter(|w| w.is_possible()).filter(is_weighed).collect();
    let of_signature = left.iter().filter(|w| w.head.signature.is_some());
    let least = of_signature.map(|w| w.doubts()).min().unwrap_or(0);
    let more = if cpuid.is_virtual() { HIDDEN_MORE } else { 0 };
    left.retain(|w| w.doubts() <= least + more);
    // A feature that is shown is real: not even a hypervisor invents one.
    let least = left.iter().map(|w| w.odd.len()).min().unwrap_or(0);
    left.retain(|w| w.is_claimed || w.odd.len() == least);
    // The user's own table goes before a built-in one that fits as well.
    if let Some(own) = left.iter().find(|w| w.head.is_own && w.is_claimed).copied() {
        left.retain(|w| w.head.is_own || w.is_claimed && w.head.core != own.head.core);
    }
    left
}

/// The one table that all this leaves.
fn choose<'a>(
    weighed: &'a [Weighed],
    left: &[&'a Weighed],
    cpuid: &Cpuid,
) -> (Option<&'a Weighed>, By) {
    let claimed: Vec<&Weighed> = left.iter().copied().filter(|w| w.is_claimed).collect();
    match (&claimed[..], left) {
        ([one], _) => (Some(one), By::Model),
        ([], [one]) => (Some(one), By::Features),
        ([], []) => match lone_contradiction(weighed) {
            Some(one) => (Some(one), By::Model),
            None => (None, By::None),
        },
        ([], _) => (None, By::None),
        // If a model has hybrid and non-hybrid products, the latter have P cores.
        (several, _) => {
            let mut large = several.iter().filter(|w| w.head.core != Some(CoreKind::E));
            match (large.next(), large.next()) {
                (Some(one), None) if !cpuid.is_hybrid() => (Some(one), By::Model),
                (Some(one), Some(_)) if several.iter().all(|w| w.head.core == one.head.core) => {
                    (Some(several[0]), By::Model)
                }
                _ => (None, By::None),
            }
        }
    }
}

/// The claimed table, where a single thing contradicts it, nothing is missing, and no other table fits:
/// a product or firmware that its signature does not know.
fn lone_contradiction(weighed: &[Weighed]) -> Option<&Weighed> {
    let mut contradicted = weighed
        .iter()
        .filter(|w| w.is_claimed && w.against.len() == 1 && w.doubts() == 0 && w.known > 0);
    contradicted.next().filter(|_| contradicted.next().is_none())
}

/// Adds the evidence for the answer, and what contradicts the claim.
fn explain(
    identity: &mut Identity,
    chosen: Option<&Weighed>,
    left: &[&Weighed],
    weighed: &[Weighed],
    cpuid: &Cpuid,
) {
    if let Some(one) = chosen.or(left.first().copied()) {
        let is_shared = |fact: &Fact| left.iter().all(|w| w.agrees.contains(fact));
        identity.evidence.extend((identity.by == By::Model).then_some(Fact::Model));
        let agrees = one.agrees.iter().filter(|fact| chosen.is_some() || is_shared(fact));
        identity.evidence.extend(agrees);
        identity.evidence.extend(telling(left, chosen, weighed, cpuid).into_iter().map(Fact::Has));
        identity
            .hidden
            .extend(chosen.into_iter().filter(|_| identity.is_virtual).flat_map(|w| &w.missing));
    }
    let is_chosen = |w: &Weighed| chosen.is_some_and(|one| one.name == w.name);
    for w in weighed.iter().filter(|w| w.is_claimed) {
        // The other kind of core of the same processor is no claim about this one.
        let is_sibling = chosen.is_some_and(|one| one.is_claimed && one.name != w.name);
        if is_sibling || left.iter().any(|l| l.name == w.name) && !is_chosen(w) {
            continue;
        }
        let missing = w.missing.iter().filter(|_| !is_chosen(w) || !identity.is_virtual);
        let facts = w.against.iter().chain(missing).chain(&w.odd);
        let contradictions = facts.map(|fact| Contradiction { table: w.name.clone(), fact: *fact });
        identity.contradicted.extend(contradictions);
    }
}

/// The features that rule out most of the other tables.
fn telling(
    left: &[&Weighed],
    chosen: Option<&Weighed>,
    weighed: &[Weighed],
    cpuid: &Cpuid,
) -> Vec<Feature> {
    let stays = |w: &Weighed| match chosen {
        Some(one) => one.name == w.name,
        None => left.iter().any(|l| l.name == w.name),
    };
    let excludes = |feature: Feature| {
        let others = weighed.iter().filter(|w| !stays(w));
        others
            .filter(|w| w.head.signature.as_ref().is_some_and(|s| s.never.contains(&feature)))
            .count()
    };
    let mut all: Vec<(usize, Feature)> = Feature::all()
        .filter(|feature| cpuid.has(*feature) == Some(true))
        .map(|feature| (excludes(feature), feature))
        .filter(|(count, _)| *count > 0)
        .collect();
    all.sort_by_key(|(count, feature)| (std::cmp::Reverse(*count), *feature));
    all.into_iter().take(NAMED).map(|(_, feature)| feature).collect()
}

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
