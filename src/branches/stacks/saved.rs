//! Windows in memory, so that a recording of moderate size is decoded once.

use super::edges::Edges;
use super::window::{Step, Window};

/// Most branches saved: 48 MiB.
const MOST: usize = 1 << 22;

/// The windows of a recording, without places and weights.
#[derive(Debug, Default)]
pub struct Saved {
    windows: Vec<SavedWindow>,
    steps: Vec<SavedStep>,
    is_full: bool,
}

#[derive(Debug)]
struct SavedWindow {
    event: u32,
    /// The window before ends with the branch before this one's.
    continues: bool,
    is_sample: bool,
    /// Number of the step after its last.
    end: u32,
}

#[derive(Debug, Clone, Copy)]
struct SavedStep {
    edge: u32,
    cycles: Option<u16>,
    mispredicted: Option<bool>,
}

impl Saved {
    /// Saves a window with branches, if there is room for it.
    pub fn add(&mut self, event: usize, window: &Window) {
        if window.entries == 0 {
            return;
        }
        if self.is_full || window.steps.len() > MOST - self.steps.len() {
            *self = Self { is_full: true, ..Self::default() };
            return;
        }
        self.steps.extend(window.steps.iter().map(|step| SavedStep {
            edge: step.edge,
            cycles: step.cycles,
            mispredicted: step.mispredicted,
        }));
        self.windows.push(SavedWindow {
            event: event as u32,
            continues: window.previous.is_some(),
            is_sample: window.is_sample,
            end: self.steps.len() as u32,
        });
    }

    /// Calls `visit` with the event and the saved part of each window; `None` if there was no room for all.
    pub fn each(&self, edges: &Edges, visit: &mut dyn FnMut(usize, &Window)) -> Option<()> {
        let mut window = Window::default();
        let mut start = 0;
        for saved in (!self.is_full).then_some(&self.windows)? {
            let end = saved.end as usize;
            window.previous = window.steps.last().copied().filter(|_| saved.continues);
            window.is_sample = saved.is_sample;
            window.steps.clear();
            window.steps.extend(self.steps[start..end].iter().map(|step| {
                let edge = edges.get(step.edge);
                Step {
                    edge: step.edge,
                    from: edge.from,
                    to: edge.to,
                    mispredicted: step.mispredicted,
                    cycles: step.cycles,
                }
            }));
            start = end;
            visit(saved.event as usize, &window);
        }
        Some(())
    }
}
