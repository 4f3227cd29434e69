//! Access patterns of loads, from bursts of their addresses and values: windows of all loads → the pattern of each
//! within windows of its executions → their classes.
//!
//! Classes by the operations that compute the address, after Ayers, Litz, Kozyrakis and Ranganathan, "Classifying
//! Memory Access Patterns for Prefetching" (ASPLOS 2020): none is constant, an addition a stride, a load a pointer
//! chase or indirect, all else irregular. Dataflow (`origins`: which loads an address may be computed from) gives the
//! candidates, and the recorded values confirm or refute them: address = offset + scale × value.

mod origins;
#[cfg(test)]
mod tests;

use crate::class::Class;
pub use origins::{Part, origins};
use std::collections::BTreeMap;

/// The class of a load, and how much of what was seen agrees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classified {
    /// Its class.
    pub class: Class,
    /// The distance of most addresses to those before them, whatever the class.
    pub stride: Option<i64>,
    /// Windows that were looked at.
    pub windows: usize,
    /// Windows that agree.
    pub agree: usize,
    /// For a stride: how often it was the distance of an address to the one before, and how often not.
    pub steps: Option<(u64, u64)>,
}

/// The classes of loads, from bursts of their executions, each in order of execution by one thread.
/// None for a load that was not seen often enough.
///
/// ```
/// use loads::class::Class;
/// use loads::pattern::{Event, Load, classify};
///
/// // for (i…) sum += table[index[i]]: load 0 is of `index`, load 1 of `table`.
/// let loads = [
///     Load { width: 4, origins: vec![] },
///     Load { width: 8, origins: vec![0] },
/// ];
/// let index = |i: u64| i * i % 101;
/// let burst: Vec<Event> = (0..256)
///     .flat_map(|i| {
///         let first = Event { load: 0, address: 0x1000 + 4 * i, value: Some(index(i)) };
///         [first, Event { load: 1, address: 0x8000 + 8 * index(i), value: Some(7) }]
///     })
///     .collect();
/// let found = classify(&loads, &[burst]);
/// let classes: Vec<Class> = found.into_iter().map(|one| one.unwrap().class).collect();
/// let inner = Box::new(Class::Stride(4));
/// assert_eq!(classes, [Class::Stride(4), Class::Indirect { of: 0, scale: 8, inner }]);
/// ```
pub fn classify(loads: &[Load], bursts: &[Vec<Event>]) -> Vec<Option<Classified>> {
    let all: Vec<Vec<Window>> = (0..loads.len())
        .map(|number| bursts.iter().flat_map(|burst| windows(loads, number, burst)).collect())
        .collect();
    let kinds: Vec<Option<(Kind, i64)>> = all.iter().map(|one| kind(one)).collect();
    let one = |(number, windows): (usize, &Vec<Window>)| {
        let (kind, _) = kinds[number]?;
        let steps = match kind {
            Kind::Stride(stride) => Some(steps(bursts, number, stride)),
            _ => None,
        };
        Some(Classified {
            class: class(&kinds, number, loads.len())?,
            stride: commonest(windows.iter().map(|w| w.stride)).flatten(),
            windows: windows.len(),
            agree: windows.iter().filter(|w| w.kind == kind).count(),
            steps,
        })
    };
    all.iter().enumerate().map(one).collect()
}

/// How often two addresses in a row differ by the stride, and by something else.
fn steps(bursts: &[Vec<Event>], number: usize, stride: i64) -> (u64, u64) {
    let (mut same, mut other) = (0, 0);
    for burst in bursts {
        let own = burst.iter().filter(|event| event.load == number).map(|event| event.address);
        let own: Vec<u64> = own.collect();
        for two in own.windows(2) {
            match two[1].wrapping_sub(two[0]).cast_signed() == stride {
                true => same += 1,
                false => other += 1,
            }
        }
    }
    (same, other)
}

/// The kind of most windows, with the offset of most of those.
fn kind(windows: &[Window]) -> Option<(Kind, i64)> {
    let kind = commonest(windows.iter().map(|w| w.kind))?;
    let offset = commonest(windows.iter().filter(|w| w.kind == kind).map(|w| w.offset))?;
    Some((kind, offset))
}

/// The class of a load from the kinds of all; `depth` bounds how far it is followed.
fn class(kinds: &[Option<(Kind, i64)>], number: usize, depth: usize) -> Option<Class> {
    let (kind, offset) = (*kinds.get(number)?)?;
    Some(match kind {
        Kind::Constant => Class::Constant,
        Kind::Stride(stride) => Class::Stride(stride),
        Kind::Irregular => Class::Irregular,
        Kind::Linear { scale, .. } if is_chase(kinds, number) => Class::Chase { scale, offset },
        Kind::Linear { of, scale: 1 } if is_chase(kinds, of) => Class::OffsetOfChase { of, offset },
        Kind::Linear { of, scale } => {
            let inner = depth.checked_sub(1).and_then(|depth| class(kinds, of, depth));
            Class::Indirect { of, scale, inner: Box::new(inner.unwrap_or(Class::Irregular)) }
        }
    })
}

/// Whether the address of a load is made from its own earlier value, if by way of other loads.
fn is_chase(kinds: &[Option<(Kind, i64)>], number: usize) -> bool {
    let mut at = number;
    for _ in 0..kinds.len() {
        match kinds.get(at) {
            Some(Some((Kind::Linear { of, .. }, _))) => at = *of,
            _ => return false,
        }
        if at == number {
            return true;
        }
    }
    false
}

/// At least this share of the pairs must agree: a short loop begins anew within a window.
const AGREE: (usize, usize) = (3, 4);
/// Different values from which a relation can be seen.
const DIFFERENT: usize = 4;
/// Largest scale: bytes of an element.
const MOST: i128 = 1 << 20;

/// How addresses follow from values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Linear {
    pub scale: i64,
    pub offset: i64,
}

/// The element that occurs most often, and how often.
fn most<T: Ord + Copy>(all: impl Iterator<Item = T>) -> Option<(T, usize)> {
    let mut counts: BTreeMap<T, usize> = BTreeMap::new();
    all.for_each(|one| *counts.entry(one).or_default() += 1);
    counts.into_iter().max_by_key(|(_, count)| *count)
}

/// The element that occurs most often.
fn commonest<T: Ord + Copy>(all: impl Iterator<Item = T>) -> Option<T> {
    most(all).map(|(one, _)| one)
}

/// The element that occurs most often, if it does in enough of `of`.
fn prevailing<T: Ord + Copy>(all: impl Iterator<Item = T>, of: usize) -> Option<T> {
    let (one, count) = most(all)?;
    (count * AGREE.1 >= of * AGREE.0).then_some(one)
}

/// The relation of pairs (value, address), with values of `width` bytes: signed or not, whichever
/// fits.
pub(super) fn linear(pairs: &[(u64, u64)], width: u32) -> Option<Linear> {
    let mut values: Vec<u64> = pairs.iter().map(|pair| pair.0).collect();
    values.sort_unstable();
    values.dedup();
    if values.len() < DIFFERENT {
        return None;
    }
    let shift = 64 - 8 * width.clamp(1, 8);
    let signed = |value: u64| (value << shift).cast_signed() >> shift;
    let unsigned = |value: u64| (value << shift >> shift).cast_signed();
    fit(pairs, unsigned).or_else(|| fit(pairs, signed))
}

fn fit(pairs: &[(u64, u64)], value: impl Fn(u64) -> i64) -> Option<Linear> {
    let step = |two: &[(u64, u64)]| {
        let by = i128::from(value(two[1].0)) - i128::from(value(two[0].0));
        let to = i128::from(two[1].1.cast_signed()) - i128::from(two[0].1.cast_signed());
        (by != 0).then_some((by, to))
    };
    let steps: Vec<(i128, i128)> = pairs.windows(2).filter_map(step).collect();
    let whole = |(by, to): &(i128, i128)| (to % by == 0).then_some(to / by);
    // One pair that does not agree spoils two steps.
    let scale = commonest(steps.iter().filter_map(whole))?;
    if scale == 0 || scale.abs() > MOST {
        return None;
    }
    let scale = i64::try_from(scale).ok()?;
    let rest =
        |(from, to): &(u64, u64)| to.cast_signed().wrapping_sub(value(*from).wrapping_mul(scale));
    let offset = prevailing(pairs.iter().map(rest), pairs.len())?;
    Some(Linear { scale, offset })
}

/// Executions in a window.
const WINDOW: usize = 64;
/// Fewest executions that show a pattern.
const FEWEST: usize = 8;
/// Executions of the other load back to the one whose value is used: code that loads ahead.
const AHEAD: usize = 4;

/// Values of a load, the last one first.
type Values = [Option<u64>; AHEAD];

/// One execution of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Index of the load.
    pub load: usize,
    /// Where it loads from.
    pub address: u64,
    /// The loaded value, the low bytes first; none if it was not recorded.
    pub value: Option<u64>,
}

/// Static properties of a load.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Load {
    /// Bytes that it loads.
    pub width: u32,
    /// Indices of the loads that its address may be computed from.
    pub origins: Vec<usize>,
}

/// Property shared by the addresses of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Constant,
    /// `scale` × the value of the load `of` plus an offset.
    Linear {
        of: usize,
        scale: i64,
    },
    Stride(i64),
    Irregular,
}

/// A window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub kind: Kind,
    /// Bytes added, if it is linear.
    pub offset: i64,
    /// The distance of most addresses to those before them.
    pub stride: Option<i64>,
}

/// The windows of load `number` in one burst of events, in the order of their execution by one
/// thread.
pub(super) fn windows(loads: &[Load], number: usize, burst: &[Event]) -> Vec<Window> {
    let own: Vec<usize> = (0..burst.len()).filter(|at| burst[*at].load == number).collect();
    // A word that is always loaded from the same place holds what was stored there: a counter, or a
    // spilled value, which the dataflow has followed.
    let varies = |of: &usize| {
        let mut all = burst.iter().filter(|event| event.load == *of).map(|event| event.address);
        let first = all.next();
        all.any(|address| Some(address) != first)
    };
    let origins: Vec<usize> = loads[number].origins.iter().copied().filter(varies).collect();
    let before: Vec<Vec<Values>> = origins.iter().map(|of| values(burst, *of, &own)).collect();
    let chunk = |from: usize, to: usize| {
        let addresses: Vec<u64> = own[from..to].iter().map(|at| burst[*at].address).collect();
        let stride = stride(&addresses);
        if stride == Some(0) {
            return Window { kind: Kind::Constant, offset: 0, stride };
        }
        for ahead in 0..AHEAD {
            for (of, values) in origins.iter().zip(&before) {
                let pair = |at: usize| Some((values[at][ahead]?, burst[own[at]].address));
                let pairs: Vec<(u64, u64)> = (from..to).filter_map(pair).collect();
                let enough = pairs.len() + AHEAD >= to - from;
                let found = linear(&pairs, loads[*of].width).filter(|_| enough);
                if let Some(Linear { scale, offset }) = found {
                    return Window { kind: Kind::Linear { of: *of, scale }, offset, stride };
                }
            }
        }
        Window { kind: stride.map_or(Kind::Irregular, Kind::Stride), offset: 0, stride }
    };
    let mut all = Vec::new();
    for from in (0..own.len()).step_by(WINDOW) {
        let to = own.len().min(from + WINDOW);
        // The remainder of the last one is a window of its own only if it is the first.
        if to - from == WINDOW || (from == 0 && to >= FEWEST) {
            all.push(chunk(from, to));
        }
    }
    all
}

/// The last values of the load `of` before each of these events, the last one first.
fn values(burst: &[Event], of: usize, events: &[usize]) -> Vec<Values> {
    let mut last = [None; AHEAD];
    let mut next = 0;
    let mut all = Vec::with_capacity(events.len());
    for at in events {
        for event in burst[next..*at].iter().filter(|event| event.load == of) {
            last.rotate_right(1);
            last[0] = event.value;
        }
        next = *at;
        all.push(last);
    }
    all
}

/// The distance of most addresses to the other ones before them: repeated ones aside, which a loop
/// inside makes. 0 if all are the same.
fn stride(addresses: &[u64]) -> Option<i64> {
    let mut different = addresses.to_vec();
    different.dedup();
    if different.len() == 1 {
        return Some(0);
    }
    let steps = different.windows(2).map(|two| two[1].wrapping_sub(two[0]).cast_signed());
    prevailing(steps, different.len() - 1).filter(|_| different.len() >= FEWEST)
}
