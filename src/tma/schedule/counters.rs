//! Decides whether events fit on the counters together, by an exact matching of events to counters: the greedy
//! pass, else augmenting paths.
//!
//! General counters are bits 0…31 of a mask, fixed counters bits 32…63. The events of a plan are
//! numbered so that the most restricted come first: the greedy pass then nearly always finds the
//! matching at once and the search for augmenting paths is rarely needed.

use super::allowed::{
    Bits, Budget, FIXED_CYCLES, FIXED_SHIFT, FIXED_SLOTS, NoCounter, counters_of, extra_limit,
    fixed_bit, is_slots, slots_event,
};
use crate::tables::{EventId, Table};
use std::collections::BTreeMap;

/// The counter of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    /// A general counter.
    General(u8),
    /// A fixed counter.
    Fixed(u8),
    /// A field of the top-down metrics register; occupies no counter.
    Metric(u8),
}

/// Different values of one extra register that a group may hold.
struct Extra {
    users: Bits,
    limit: usize,
    values: BTreeMap<usize, Option<u64>>,
}

/// The events of one plan, numbered from 0, with the counters each can use.
pub(super) struct Universe {
    ids: Vec<EventId>,
    numbers: BTreeMap<EventId, usize>,
    masks: Vec<u64>,
    metrics: Vec<Option<u8>>,
    /// Events that no fixed counter and no metric register counts.
    general_only: Bits,
    general: usize,
    all_metrics: Bits,
    slots: Bits,
    extras: Vec<Extra>,
    always: Option<usize>,
    watchdog: u64,
    free: u64,
}

impl Universe {
    /// Numbers those of `wanted` that `budget` can count one by one; the others come back with
    /// the reason.
    pub(super) fn new(
        table: &Table,
        budget: &Budget,
        wanted: impl IntoIterator<Item = EventId>,
    ) -> (Self, Vec<(EventId, NoCounter)>) {
        let mut refused = Vec::new();
        let mut found: BTreeMap<EventId, u64> = BTreeMap::new();
        for event in wanted.into_iter().chain(budget.always) {
            match counters_of(table, budget, event) {
                Ok(mask) => drop(found.insert(event, mask)),
                Err(why) => refused.push((event, why)),
            }
        }
        if found.keys().any(|e| table.events[usize::from(*e)].spec.metric.is_some())
            && !found.keys().any(|e| is_slots(table, *e))
            && let Some(slots) = slots_event(table)
        {
            found.insert(slots, fixed_bit(FIXED_SLOTS));
        }
        let mut order: Vec<(EventId, u64)> = found.into_iter().collect();
        order.sort_by_key(|(e, mask)| (mask.count_ones(), *e));
        for (event, _) in order.drain(order.len().min(Bits::CAPACITY)..) {
            refused.push((event, NoCounter::Limit));
        }
        let mut universe = Self::numbered(table, budget, &order);
        let alone = |(e, _): &(EventId, u64)| {
            let set = universe.number(*e).into_iter().collect();
            universe.fits(&universe.complete(&set))
        };
        let (fit, crowded): (Vec<_>, Vec<_>) = order.iter().partition(|e| alone(e));
        if !crowded.is_empty() {
            refused.extend(crowded.into_iter().map(|(e, _)| (e, NoCounter::Crowded)));
            universe = Self::numbered(table, budget, &fit);
        }
        refused.sort();
        refused.dedup();
        (universe, refused)
    }

    fn numbered(table: &Table, budget: &Budget, order: &[(EventId, u64)]) -> Self {
        let spec = |e: EventId| &table.events[usize::from(e)].spec;
        let pick = |test: &dyn Fn(EventId, u64) -> bool| -> Bits {
            (0..).zip(order).filter(|(_, (e, m))| test(*e, *m)).map(|(i, _)| i).collect()
        };
        let mut extras: BTreeMap<u8, Extra> = BTreeMap::new();
        for (i, (e, _)) in order.iter().enumerate() {
            let Some(register) = spec(*e).extra else { continue };
            let extra = extras.entry(register as u8).or_insert_with(|| Extra {
                users: Bits::default(),
                limit: extra_limit(register),
                values: BTreeMap::new(),
            });
            extra.users.insert(i);
            extra.values.insert(i, spec(*e).value);
        }
        let general = u64::from(budget.general);
        let fixed = u64::from(budget.fixed) << FIXED_SHIFT;
        Self {
            ids: order.iter().map(|(e, _)| *e).collect(),
            numbers: (0..).zip(order).map(|(i, (e, _))| (*e, i)).collect(),
            masks: order.iter().map(|(_, m)| *m).collect(),
            metrics: order.iter().map(|(e, _)| spec(*e).metric).collect(),
            general_only: pick(&|_, m| m != 0 && m >> FIXED_SHIFT == 0),
            general: general.count_ones() as usize,
            all_metrics: pick(&|e, _| spec(e).metric.is_some()),
            slots: pick(&|e, _| is_slots(table, e)),
            extras: extras.into_values().collect(),
            always: order.iter().position(|(e, _)| budget.always == Some(*e)),
            watchdog: if budget.watchdog { general | (fixed & fixed_bit(FIXED_CYCLES)) } else { 0 },
            free: general | fixed,
        }
    }

    /// The number of `event`, unless it was refused or not wanted.
    pub(super) fn number(&self, event: EventId) -> Option<usize> {
        self.numbers.get(&event).copied()
    }

    pub(super) fn id(&self, number: usize) -> EventId {
        self.ids[number]
    }

    /// `set` and what its members need beside them: slots for the metric events, the event
    /// that every group counts.
    pub(super) fn complete(&self, set: &Bits) -> Bits {
        let mut out = *set;
        if !set.is_empty()
            && let Some(always) = self.always
        {
            out.insert(always);
        }
        if !set.and(&self.all_metrics).is_empty()
            && set.and(&self.slots).is_empty()
            && let Some(slots) = self.slots.iter().next()
        {
            out.insert(slots);
        }
        out
    }

    /// Events that [`Universe::complete`] may add.
    pub(super) fn companions(&self) -> Bits {
        self.slots.iter().chain(self.always).collect()
    }

    /// How many members of `set` need a general counter.
    pub(super) fn weight(&self, set: &Bits) -> usize {
        set.and(&self.general_only).len()
    }

    /// A number of groups that no plan serving all of `set` can go below.
    pub(super) fn lower_bound(&self, set: &Bits) -> usize {
        let mut least = usize::from(!set.is_empty());
        let masks: Vec<u64> = set.iter().map(|i| self.masks[i]).filter(|m| *m != 0).collect();
        for bound in &masks {
            let inside = masks.iter().filter(|m| *m & !bound == 0).count();
            least = least.max(inside.div_ceil(bound.count_ones() as usize));
        }
        for extra in &self.extras {
            least = least.max(extra.different(set).div_ceil(extra.limit));
        }
        least
    }

    /// Whether the events of `set` can be counted at the same time.
    pub(super) fn fits(&self, set: &Bits) -> bool {
        self.weight(set) <= self.general
            && self.extras.iter().all(|x| x.different(set) <= x.limit)
            && owners(set, &self.masks, self.free, self.watchdog).is_some()
    }

    /// The counter of each member of `set`, in ascending order of members.
    pub(super) fn assign(&self, set: &Bits) -> Option<Vec<(EventId, Counter)>> {
        if !self.fits(set) {
            return None;
        }
        let owners = owners(set, &self.masks, self.free, self.watchdog)?;
        let place = |i: usize| {
            if let Some(index) = self.metrics[i] {
                return Some(Counter::Metric(index));
            }
            let at = owners.iter().position(|o| usize::from(*o) == i)?;
            let at = u8::try_from(at).ok()?;
            Some(match at.checked_sub(FIXED_SHIFT as u8) {
                Some(fixed) => Counter::Fixed(fixed),
                None => Counter::General(at),
            })
        };
        set.iter().map(|i| Some((self.ids[i], place(i)?))).collect()
    }
}

impl Extra {
    /// How many different register values the members of `set` need.
    fn different(&self, set: &Bits) -> usize {
        let users = set.and(&self.users);
        if users.len() < 2 {
            return users.len();
        }
        let mut values: Vec<_> = users.iter().map(|i| self.values.get(&i)).collect();
        values.sort();
        values.dedup();
        values.len()
    }
}

const UNOWNED: u16 = u16::MAX;
const WATCHDOG: u16 = u16::MAX - 1;

/// The owner of each counter in a matching that serves all of `set` and the `watchdog`, on the counters that are `free`;
/// `masks` are the counters of each event, 0 of those that need none.
fn owners(set: &Bits, masks: &[u64], free: u64, watchdog: u64) -> Option<[u16; 64]> {
    let mut matching = Matching { owner: [UNOWNED; 64], free, masks, watchdog };
    for i in set.iter() {
        let mask = masks[i];
        if mask != 0 && !matching.place(i as u16, mask) {
            return None;
        }
    }
    if watchdog != 0 && !matching.place(WATCHDOG, watchdog) {
        return None;
    }
    Some(matching.owner)
}

/// Events by number, with the counters that each may have.
struct Matching<'a> {
    owner: [u16; 64],
    free: u64,
    masks: &'a [u64],
    watchdog: u64,
}

impl Matching<'_> {
    /// Gives event `i` a counter of `mask`, moving others if that is what it takes.
    fn place(&mut self, i: u16, mask: u64) -> bool {
        let open = mask & self.free;
        if open != 0 {
            // The highest: a fixed counter where there is one, and the low general counters,
            // which most restricted events ask for, stay free.
            self.take(63 - open.leading_zeros() as usize, i);
            return true;
        }
        let mut tried = 0;
        self.augment(i, mask, &mut tried)
    }

    fn take(&mut self, counter: usize, i: u16) {
        self.owner[counter] = i;
        self.free &= !(1 << counter);
    }

    fn augment(&mut self, i: u16, mask: u64, tried: &mut u64) -> bool {
        let open = mask & self.free;
        if open != 0 {
            self.take(63 - open.leading_zeros() as usize, i);
            return true;
        }
        loop {
            let next = mask & !*tried;
            if next == 0 {
                return false;
            }
            let counter = next.trailing_zeros() as usize;
            *tried |= 1 << counter;
            let other = self.owner[counter];
            if other == UNOWNED {
                continue; // a counter outside the budget
            }
            let others_mask = match other {
                WATCHDOG => self.watchdog,
                e => self.masks[usize::from(e)],
            };
            if self.augment(other, others_mask, tried) {
                self.owner[counter] = i;
                return true;
            }
        }
    }
}
