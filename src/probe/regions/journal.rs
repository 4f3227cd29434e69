//! The log of an image: a ring in shared memory, read while the program runs.

use crate::emit::{EVENT, EVENTS, LIMIT, LOGGED, MOST_EVENTS, MOST_POLLS, POLLS};
use crate::patch::Shared;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Events read at once.
const MANY: u64 = 1 << 12;

/// An executed marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Number of its site.
    pub site: u32,
    /// The process if it was forked, else 0.
    pub process: i32,
    /// The base of the thread's own memory.
    pub base: u64,
    /// Begin and end of its probe.
    pub times: (u64, u64),
    /// The argument.
    pub value: u64,
}

/// An entry of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    Event(Event),
    /// This number of events is missing.
    Lost(u64),
    /// A thread has ended: the base of its own memory may be reused.
    ThreadEnded {
        process: i32,
        base: u64,
        tid: i32,
    },
}

/// The log of one image.
pub struct Journal {
    shared: Arc<Shared>,
    /// The process of the image; its forks write here, too.
    pub process: i32,
    /// Number of events read.
    read: u64,
    /// Ended threads, with the number of events before.
    ended: VecDeque<(u64, Entry)>,
    /// First event without room.
    limit: u64,
    /// Ranges of events that had no room, in order.
    gaps: VecDeque<Range<u64>>,
}

/// Bytes of shared memory needed.
pub fn needs() -> u64 {
    EVENTS + MOST_EVENTS * EVENT
}

impl Journal {
    /// An empty log. If its memory cannot be written, all events are lost.
    pub fn new(shared: Arc<Shared>, process: i32) -> Self {
        permit(&shared, MOST_EVENTS);
        let (ended, gaps) = (VecDeque::new(), VecDeque::new());
        Self { shared, process, read: 0, ended, limit: MOST_EVENTS, gaps }
    }

    /// Number of markers executed so far.
    fn logged(&self) -> u64 {
        let mut word = [0; 8];
        self.shared.read(&mut word, LOGGED).map_or(0, |()| u64::from_le_bytes(word))
    }

    /// A thread of a process is about to end.
    pub fn leave(&mut self, process: i32, base: u64, tid: i32) {
        let entry = Entry::ThreadEnded { process, base, tid };
        self.ended.push_back((self.logged(), entry));
    }

    /// Reads all complete entries, in order.
    pub fn read(&mut self, see: &mut dyn FnMut(Entry)) {
        loop {
            while let Some((after, entry)) = self.ended.front().copied()
                && after <= self.read
            {
                self.ended.pop_front();
                see(entry);
            }
            // Events before the next end of a thread.
            let until = self.ended.front().map_or(u64::MAX, |(after, _)| *after);
            if self.some(until, see) == 0 && !self.skip(see) {
                return;
            }
        }
    }

    /// Reads some events before `until`; their number.
    fn some(&mut self, until: u64, see: &mut dyn FnMut(Entry)) -> u64 {
        let slot = self.read % MOST_EVENTS;
        let next_gap = self.gaps.front().map_or(u64::MAX, |gap| gap.start);
        let end = self.logged().min(until).min(next_gap);
        let most = end.saturating_sub(self.read).min(MANY).min(MOST_EVENTS - slot);
        let mut bytes = vec![0; (most * EVENT) as usize];
        if most == 0 || self.shared.read(&mut bytes, EVENTS + slot * EVENT).is_err() {
            return 0;
        }
        let before = self.read;
        for bytes in bytes.as_chunks::<{ EVENT as usize }>().0 {
            // An unwritten event ends the log.
            let Some(event) = event(bytes, self.read) else { break };
            see(Entry::Event(event));
            self.read += 1;
        }
        self.make_room();
        self.read - before
    }

    /// Permits as many events as the ring has free entries. Earlier events without room are lost.
    fn make_room(&mut self) {
        let logged = self.logged();
        if logged > self.limit {
            self.gaps.push_back(self.limit..logged);
        }
        self.limit = self.read + MOST_EVENTS;
        permit(&self.shared, self.limit);
    }

    /// Skips events without room, if they are next.
    fn skip(&mut self, see: &mut dyn FnMut(Entry)) -> bool {
        let Some(gap) = self.gaps.front().filter(|gap| gap.start <= self.read).cloned() else {
            return false;
        };
        self.gaps.pop_front();
        if gap.end > self.read {
            see(Entry::Lost(gap.end - self.read));
            self.read = gap.end;
            self.make_room();
        }
        true
    }

    /// Reads the rest of an image that has ended.
    pub fn finish(mut self, see: &mut dyn FnMut(Entry)) {
        self.make_room();
        let logged = self.logged();
        loop {
            self.read(see);
            if self.read >= logged {
                return;
            }
            // Its thread was killed before the event was complete.
            see(Entry::Lost(1));
            self.read += 1;
        }
    }
}

/// Permits events with lower numbers; others wait for room.
fn permit(shared: &Shared, limit: u64) {
    let _ = shared.write(&limit.to_le_bytes(), LIMIT);
    let _ = shared.write(&MOST_POLLS.to_le_bytes(), POLLS);
}

/// Decodes an entry written by a trampoline, if it is of this event.
fn event(bytes: &[u8; EVENT as usize], number: u64) -> Option<Event> {
    let mut words = [0; EVENT as usize / 8];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    let [head, begin, end, base, value, numbers, ..] = words;
    let (site, process) = (numbers as u32, (numbers >> 32) as i32);
    let event = Event { site, process, base, times: (begin, end), value };
    (head == number + 1).then_some(event)
}
