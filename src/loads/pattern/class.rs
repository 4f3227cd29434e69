//! Windows of all loads → their classes.

use super::relation::commonest;
use super::window::{Event, Kind, Load, Window, windows};
use crate::class::Class;

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
