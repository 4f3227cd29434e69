//! The pattern of a load within windows of its executions.

use super::relation::{Linear, linear, prevailing};

/// Executions in a window.
pub(super) const WINDOW: usize = 64;
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
