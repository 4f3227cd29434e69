//! Finds how places recur from iteration to iteration: rings of loads, slices, classes.

use super::function::{Operation, Place, Value};
use super::motion::{Motion, Rings, Term};
use super::run::{Iteration, Sites};
use crate::class::{Ahead, Class};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How far places are replaced by what they were set to in the iteration before.
const DEEPEST: usize = 16;
/// Most places that an iteration may change; with more, the class is not known.
const MOST_PLACES: usize = 256;

/// A load's class at one level of the loop nest, on one path.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OnPath {
    pub class: Class<u64>,
    pub wraps: Option<u64>,
    pub slice: Sites,
    /// Instructions of the slice that compute the start of the next iteration.
    pub carried: Sites,
    /// Next values of the places that the address is computed from.
    pub next: BTreeMap<Place, Value>,
}

/// The class of the load at `load`, and its slice.
pub(super) fn on_path(iteration: &Iteration, load: u64) -> OnPath {
    if iteration.after.len() > MOST_PLACES {
        let class = Class::Irregular;
        let slice = iteration.address.sites.clone();
        let (carried, next) = (Sites::new(), BTreeMap::new());
        return OnPath { class, wraps: None, slice, carried, next };
    }
    let found = Recurrences::of(iteration);
    let motion = found.motion(&iteration.address.value, DEEPEST);
    let (carried, next) = carried(iteration);
    let slice = iteration.address.sites.union(&carried).copied().collect();
    let class = motion.class(load, &found.rings);
    OnPath { class, wraps: motion.wraps, slice, carried, next }
}

/// The instructions that set what the address is computed from, in the iteration before; and what they set it to.
fn carried(iteration: &Iteration) -> (Sites, BTreeMap<Place, Value>) {
    let mut carried = Sites::new();
    let mut pending: Vec<Place> = places(&iteration.address.value);
    let mut next = BTreeMap::new();
    while let Some(place) = pending.pop() {
        if let Place::Word(address) = &place {
            pending.extend(places(address).into_iter().filter(|place| !next.contains_key(place)));
        }
        let Some(made) = iteration.after.get(&place) else { continue };
        if next.insert(place, made.value.clone()).is_none() {
            carried.extend(&made.sites);
            pending.extend(places(&made.value));
        }
    }
    (carried, next)
}

fn places(value: &Value) -> Vec<Place> {
    value.places().into_iter().map(|(place, _)| place).collect()
}

/// All places that a place depends on over iterations, and whether through a load.
fn reached(iteration: &Iteration, from: &Place) -> BTreeSet<(Place, bool)> {
    let mut reached = BTreeSet::new();
    let mut pending = VecDeque::from([(from.clone(), false)]);
    while let Some((place, loaded)) = pending.pop_front() {
        let Some(made) = iteration.after.get(&place) else { continue };
        for (next, in_load) in made.value.places() {
            let next = (next, loaded || in_load);
            if reached.insert(next.clone()) {
                pending.push_back(next);
            }
        }
    }
    reached
}

/// Loads on a way from a place back to itself.
fn rings(iteration: &Iteration, reached: &Reached) -> Rings {
    let mut rings = Rings::default();
    for (place, made) in &iteration.after {
        for (site, address) in made.value.loads() {
            let is_ring = |from: &Place| from == place || leads(reached, from, place);
            if address.places().iter().any(|(from, _)| is_ring(from)) {
                rings.0.insert(site);
            }
        }
    }
    rings
}

/// Places that each place depends on over iterations.
type Reached = BTreeMap<Place, BTreeSet<(Place, bool)>>;

/// Whether a place depends on another.
fn leads(reached: &Reached, from: &Place, to: &Place) -> bool {
    let own = reached.get(from);
    own.is_some_and(|own| own.contains(&(to.clone(), true)) || own.contains(&(to.clone(), false)))
}

struct Recurrences<'a> {
    iteration: &'a Iteration,
    reached: Reached,
    rings: Rings,
}

impl<'a> Recurrences<'a> {
    fn of(iteration: &'a Iteration) -> Self {
        let of = |place: &Place| (place.clone(), reached(iteration, place));
        let reached: Reached = iteration.after.keys().map(of).collect();
        let rings = rings(iteration, &reached);
        Self { iteration, reached, rings }
    }
}

impl Recurrences<'_> {
    fn motion(&self, value: &Value, deepest: usize) -> Motion {
        let Some(deeper) = deepest.checked_sub(1) else { return Motion::one(Term::Unknown) };
        let (terms, constant) = value.terms();
        let mut motion = Motion { constant, ..Motion::default() };
        for (value, factor) in &terms {
            motion.add(self.term(value, *factor, deeper));
        }
        motion
    }

    fn term(&self, value: &Value, factor: i64, deeper: usize) -> Motion {
        match value {
            Value::Fixed(_) => Motion::default(),
            Value::Unknown => Motion::one(Term::Unknown),
            Value::Sum(..) => self.motion(value, deeper).scaled(factor),
            Value::Mask(inner, mask) => {
                let mut motion = self.motion(inner, deeper).scaled(factor);
                let bytes = mask.wrapping_add(1).wrapping_mul(factor.unsigned_abs());
                if motion.terms.iter().any(|term| matches!(term, Term::Step(_) | Term::Steady)) {
                    if motion.step().unsigned_abs() >= bytes {
                        return Motion::one(Term::Computed { ahead: motion.ahead() });
                    }
                    motion.wraps = Some(bytes);
                }
                motion
            }
            Value::Load(site, address) => Motion::one(self.loaded(*site, address, factor, deeper)),
            Value::Computed(how, from) => self.computed(*how, from, factor, deeper),
            Value::Start(place) => self.start(place, factor, deeper),
        }
    }

    fn loaded(&self, site: u64, address: &Value, scale: i64, deeper: usize) -> Term {
        if self.rings.has(site) {
            return Term::Ring { of: site, scale };
        }
        let inner = self.motion(address, deeper).class(site, &self.rings);
        Term::Loaded { of: site, scale, inner }
    }

    fn computed(&self, how: Operation, from: &[Value], factor: i64, deeper: usize) -> Motion {
        let all: Vec<Motion> = from.iter().map(|one| self.motion(one, deeper)).collect();
        let moving: Vec<&Motion> = all.iter().filter(|one| !one.terms.is_empty()).collect();
        if !all.iter().all(Motion::is_known) {
            return Motion::one(Term::Unknown);
        }
        match (how, &moving[..]) {
            (_, []) => Motion::default(),
            (Operation::And, [one]) => (*one).clone().scaled(factor),
            (Operation::Choice, _) => {
                let chosen = all.iter().take(2).flat_map(|one| &one.terms);
                let ring = chosen.clone().find_map(|term| match term {
                    Term::Ring { of, .. } => Some(*of),
                    _ => None,
                });
                let only = chosen.clone().all(|term| matches!(term, Term::Ring { .. }));
                match ring {
                    Some(of) if only => Motion::one(Term::Ring { of, scale: factor }),
                    _ => Motion::one(Term::Computed { ahead: ahead(&all) }),
                }
            }
            _ => Motion::one(Term::Computed { ahead: ahead(&all) }),
        }
    }

    /// A multiple of what a place holds at the start of the iteration.
    fn start(&self, place: &Place, factor: i64, deeper: usize) -> Motion {
        let Some(made) = self.iteration.after.get(place) else {
            // A word whose address changes is no place.
            return Motion::default();
        };
        let after = match &made.value {
            Value::Mask(inner, _) => inner,
            other => other,
        };
        let none = BTreeSet::new();
        let reached = self.reached.get(place).unwrap_or(&none);
        let loaded = reached.contains(&(place.clone(), true));
        if loaded {
            return self.ring(after, factor);
        }
        if !reached.contains(&(place.clone(), false)) {
            return self.motion(&made.value, deeper).scaled(factor);
        }
        let (mut terms, constant) = after.terms();
        let own = Value::Start(place.clone());
        let before = terms.len();
        terms.retain(|(value, by)| *value != own || *by != 1);
        let rest = terms
            .iter()
            .fold(Value::constant(constant), |sum, (value, by)| sum.plus(&value.times(*by)));
        let again = rest
            .places()
            .iter()
            .any(|(other, _)| other == place || leads(&self.reached, other, place));
        if terms.len() == before || again {
            if self.is_unknown(place, reached) {
                return Motion::one(Term::Unknown);
            }
            let ahead = match self.is_affine(place, after) {
                true => Ahead::Directly,
                false => Ahead::ByCopy,
            };
            return Motion::one(Term::Computed { ahead });
        }
        let rest = self.motion(&rest, deeper);
        let wraps = match &made.value {
            Value::Mask(_, mask) => Some(mask.wrapping_add(1).wrapping_mul(factor.unsigned_abs())),
            _ => None,
        };
        let term = match &rest.terms[..] {
            [] if terms.is_empty() => Term::Step(constant.wrapping_mul(factor)),
            [] => Term::Steady,
            _ if !rest.is_known() => Term::Unknown,
            [Term::Loaded { of, .. }] => Term::Sum { of: *of },
            // A sum of all that was added before.
            _ => Term::Computed { ahead: rest.ahead().max(Ahead::ByCopy) },
        };
        Motion { wraps, ..Motion::one(term) }
    }

    /// Whether a place is set to a constant multiple of what it held, plus what stays the same: n iterations at once
    /// are one multiplication and one addition, too (a linear congruential generator).
    fn is_affine(&self, place: &Place, after: &Value) -> bool {
        let is_own = |value: &Value| matches!(value, Value::Start(own) if own == place);
        let is_fixed = |value: &Value| {
            let changes = |(one, _): &(Place, bool)| self.iteration.after.contains_key(one);
            value.loads().is_empty() && !value.places().iter().any(changes)
        };
        after.terms().0.iter().all(|(value, _)| is_own(value) || is_fixed(value))
    }

    /// A place that a ring of loads sets to `after`.
    fn ring(&self, after: &Value, factor: i64) -> Motion {
        let (terms, constant) = after.terms();
        let loads = after.loads();
        let of = loads.iter().find(|(site, _)| self.rings.has(*site)).or(loads.first());
        let of = of.map_or(0, |(site, _)| *site);
        match &terms[..] {
            [(Value::Load(of, _), scale)] if self.rings.has(*of) => Motion {
                constant: constant.wrapping_mul(factor),
                ..Motion::one(Term::Ring { of: *of, scale: scale.wrapping_mul(factor) })
            },
            [(Value::Computed(Operation::Choice, from), 1)] if chooses_loads(from) => {
                Motion::one(Term::Ring { of, scale: factor })
            }
            [(Value::Start(_), 1)] => Motion::one(Term::Ring { of, scale: factor }),
            _ => Motion::one(Term::Computed { ahead: Ahead::No }),
        }
    }

    fn is_unknown(&self, place: &Place, reached: &BTreeSet<(Place, bool)>) -> bool {
        let all = reached.iter().map(|(one, _)| one).chain([place]);
        all.filter_map(|one| self.iteration.after.get(one)).any(|made| {
            let mut unknown = false;
            made.value.each(false, &mut |part, _| unknown |= *part == Value::Unknown);
            unknown
        })
    }
}

/// How what is computed from all of these can be known ahead.
fn ahead(all: &[Motion]) -> Ahead {
    all.iter().map(Motion::ahead).max().unwrap_or(Ahead::Directly)
}

/// Whether both values of a choice are loaded (the children of a node).
fn chooses_loads(from: &[Value]) -> bool {
    from.iter().take(2).all(|one| matches!(one, Value::Load(..) | Value::Start(_)))
}
