//! A measured block: its report as lines of any width.

use super::put::{Layout, Paragraphs, put_rows};
use crate::keymap::Command;
use crate::tui::look::Tone;
use crate::tui::state::{Job, State, TextLine};
use ratatui::buffer::Buffer;
use ratatui::text::Line;
use report::render::block::{self, Style, Weight};

/// Draws the screen.
pub fn draw(state: &State, buffer: &mut Buffer, layout: &Layout) {
    let block = &state.block;
    put_rows(buffer, layout.list, &block.list, |row| {
        let line = block.lines.get(row)?;
        Some(Line::from(state.look.span(state.look.prose(&line.text), line.tone)))
    });
}

/// Columns from which the bytes of instructions and long bars have room.
const WIDE: usize = 70;

/// The report; until there is one, the state of the measurement and the code.
pub fn lines(state: &State, columns: usize) -> Vec<TextLine> {
    let mut out = Paragraphs::new(columns);
    match &state.block.job {
        Job::Done(report) => {
            let verbose = state.block.verbose;
            let style = Style {
                verbose,
                ascii: state.look.ascii,
                narrow: columns < WIDE,
                width: columns,
                more: state.keys.key(Command::Details),
            };
            for row in block::rows(report, &style) {
                out.paragraph(&row.label, &row.text, tone(row.weight));
            }
        }
        other => {
            let (text, tone) = state_text(other, &state.keys.key(Command::Again));
            out.paragraph("", &text, tone);
            out.blank();
            for line in &state.block.shown.code {
                out.paragraph("  ", line, Tone::Plain);
            }
        }
    }
    out.lines
}

/// The state of the measurement; `again` is the key that repeats it.
fn state_text(job: &Job, again: &str) -> (String, Tone) {
    match job {
        Job::Running(seconds, passes) => {
            let dots = ".".repeat((seconds * 2.0) as usize % 4);
            let passes = match passes {
                1 => "1 timed pass".to_owned(),
                n => format!("{n} timed passes"),
            };
            (format!("measuring {seconds:.1} s, {passes} {dots}"), Tone::Warm)
        }
        Job::Cancelled => (format!("cancelled; {again} measures again"), Tone::Bold),
        Job::Failed(why) => (format!("failed: {why}"), Tone::Hot),
        Job::Idle | Job::Done(_) => ("nothing is measured".to_owned(), Tone::Plain),
    }
}

fn tone(weight: Weight) -> Tone {
    match weight {
        Weight::Plain => Tone::Plain,
        Weight::Strong => Tone::Bold,
        Weight::Faint => Tone::Dim,
        Weight::Alert => Tone::Hot,
    }
}
