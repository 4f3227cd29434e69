//! Times of a thread in regions, to attribute samples of the same run.

use super::times::Times;

/// Most spans of all threads; later samples are not attributed.
const MOST: usize = 1 << 22;

/// A time that a thread spent in a region, without inner regions and probes, in ticks of the time
/// stamp counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Begin.
    pub from: u64,
    /// End.
    pub to: u64,
    /// The innermost region: index in [`Tree::nodes`](super::Tree::nodes).
    pub node: u32,
}

/// Spans of all threads, against their limit.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SpanCount {
    number: usize,
    /// Begin of the first span without room.
    pub cut: Option<u64>,
}

/// The spans of a thread, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Spans {
    pub all: Vec<Span>,
    open: Option<(u64, u32)>,
}

impl Spans {
    /// After a marker the thread is in this region, or in none.
    pub fn enter(&mut self, node: Option<usize>, times: Times, count: &mut SpanCount) {
        if let Some((from, node)) = self.open.take().filter(|(from, _)| *from < times.0) {
            if count.number < MOST {
                count.number += 1;
                self.all.push(Span { from, to: times.0, node });
            } else {
                count.cut = count.cut.or(Some(from));
            }
        }
        self.open = node.map(|node| (times.1, node as u32));
    }

    /// The region of the thread is unknown.
    pub fn lose(&mut self) {
        self.open = None;
    }
}
