//! The `?` screen: the keys and marks of the screen it was opened from.

use super::put::put;
use crate::keymap::Screen;
use crate::tui::look::{Tone, fit, width, wrap};
use crate::tui::state::State;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Draws it.
pub fn draw(state: &State, buffer: &mut Buffer, area: Rect) {
    let lines = lines(state, usize::from(area.width));
    put(buffer, area, &lines, state.help.unwrap_or(0));
}

/// All its lines.
pub fn lines(state: &State, columns: usize) -> Vec<Line<'static>> {
    let look = state.look;
    let title = match state.screen() {
        Screen::Tree => "Keys of the tree",
        Screen::Functions => "Keys of the functions",
        Screen::Blocks => "Keys of the blocks",
        Screen::Block => "Keys of the measured block",
        Screen::Estimate => "Keys of the estimated tree",
        Screen::EstimatedFunctions => "Keys of the estimated functions",
        Screen::EstimatedCode => "Keys of the loops and blocks",
        Screen::EstimatedSource => "Keys of the source lines",
        Screen::EstimatedBlock => "Keys of the loop or block",
        Screen::Comparison | Screen::ComparedCode => "Keys of the comparison",
        Screen::Calls => "Keys of callers and callees",
        Screen::Intervals => "Keys of the intervals",
    };
    let mut lines = vec![Line::from(look.span(title, Tone::Bold)), Line::default()];
    let all: Vec<_> = state.keys.on(state.screen()).map(|b| (b.names(), b.binding.help)).collect();
    let keys = all.iter().map(|(keys, _)| width(keys)).max().unwrap_or(0);
    let keys = keys.min(columns / 2);
    for (name, help) in all {
        for (i, text) in wrap(help, columns.saturating_sub(keys + 2)).iter().enumerate() {
            let name = if i == 0 { name.as_str() } else { "" };
            let name = look.span(fit(name, keys) + "  ", Tone::Bold);
            lines.push(Line::from(vec![name, Span::raw(text.clone())]));
        }
    }
    lines.push(Line::default());
    for text in [marks(state.screen()), state.config.as_deref().unwrap_or_default()] {
        for text in wrap(text, columns).iter().filter(|t| !t.is_empty()) {
            lines.push(Line::from(look.span(look.prose(text).into_owned(), Tone::Dim)));
        }
    }
    lines
}

/// Meaning of a screen's marks.
fn marks(screen: Screen) -> &'static str {
    match screen {
        Screen::Tree => {
            "● (* in ASCII): flagged, over its threshold as are all nodes above it. ◀ (<): the \
             bottleneck, the flagged node to work on first. ? mismeasured: a value outside -5 to \
             105 %. ± (+-): half the width of the 95 % confidence interval."
        }
        Screen::Functions => {
            "Shares are of all samples that the line at the top describes; skid: usually the \
             instruction after the stalled one."
        }
        Screen::Blocks => {
            "Shares are of all samples. ↺ (@): head of a loop; the line to its left leads down to \
             the jump back. ↑ (^): jump back to the head. → (>): other successors, with the share \
             of the block's executions. Depth: loops around it; trips: iterations of an entry, on \
             average. Stride: bytes between successive accesses of a load, constant where it is \
             named. ? edges missing: an indirect jump with unknown targets."
        }
        Screen::Estimate
        | Screen::EstimatedFunctions
        | Screen::EstimatedCode
        | Screen::EstimatedSource => {
            "Estimated, not counted: each part has its interval and source. ◀ (<): the bottleneck; \
             none where parts differ by less than their errors: undecided. ?: not known, up to \
             the end of its interval. Shares of rows (of all) are of all samples; parts, and \
             bars, are of the row's own time: Retiring, Bad Speculation, Frontend Bound, Backend \
             Bound, Unexplained."
        }
        Screen::EstimatedBlock => {
            "◆ (#): on the loop-carried critical path. ?: not known, up to the end of its interval. \
             Shares (of all) are of all samples, which are often of the instruction before; bars \
             of the block's time. Stride: bytes between successive accesses of a load."
        }
        Screen::Comparison | Screen::ComparedCode => {
            "Largest change first. Code is matched by function and instructions, wherever it is. Bars, of A and \
             of B, each of the row's own time: Retiring, Bad Speculation, Frontend Bound, Backend Bound, Unexplained."
        }
        Screen::Intervals => {
            "Each column is the mean of its time; the digits below it are the phases found, in which \
             intervals are alike. Enter shows the functions with samples in the phase."
        }
        Screen::Calls => {
            "From recorded call chains. A sample counts once for each caller and callee."
        }
        Screen::Block => {
            "Throughput is in core cycles per iteration with the working set in the caches; the \
             assumptions are listed with their evidence."
        }
    }
}
