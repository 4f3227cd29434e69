//! When a thread was in which region: what samples of the same run belong to.

use super::times::Times;

/// Most spans of all threads; what comes later has no samples.
const MOST: usize = 1 << 22;

/// A time that a thread spent in a region, outside of the regions inside it and of probes. Times are ticks of the time
/// stamp counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// From.
    pub from: u64,
    /// To.
    pub to: u64,
    /// The innermost region: index in [`Tree::nodes`](super::Tree::nodes).
    pub node: u32,
}

/// Room for spans.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Kept {
    number: usize,
    /// When the first span began that had no room.
    pub cut: Option<u64>,
}

/// The spans of a thread, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Spans {
    pub all: Vec<Span>,
    open: Option<(u64, u32)>,
}

impl Spans {
    /// A marker was executed: from then on the thread is in this region, or in none.
    pub fn enter(&mut self, node: Option<usize>, times: Times, kept: &mut Kept) {
        if let Some((from, node)) = self.open.take().filter(|(from, _)| *from < times.0) {
            if kept.number < MOST {
                kept.number += 1;
                self.all.push(Span { from, to: times.0, node });
            } else {
                kept.cut = kept.cut.or(Some(from));
            }
        }
        self.open = node.map(|node| (times.1, node as u32));
    }

    /// It is not known where the thread is.
    pub fn lose(&mut self) {
        self.open = None;
    }
}
