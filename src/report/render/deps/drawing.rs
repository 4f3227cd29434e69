//! How the text is drawn: options, wrapped lines.

use crate::render::width::Page;

/// How to draw.
#[derive(Debug, Clone, Copy, Default)]
pub struct Drawing {
    /// ASCII alone.
    pub ascii: bool,
    /// Arrows for every dependency, not just those through memory and of the critical cycle.
    pub every: bool,
    /// Where it is shown.
    pub page: Page,
}

/// Columns of a line of prose; where any line has room, the code with its arrows takes what it needs.
const WIDTH: usize = 80;

/// Writes `line`, broken between words where it is too long; what follows is `indent` columns in.
pub fn wrapped(out: &mut String, indent: usize, line: &str) {
    let text = line.trim_start();
    let mut column = line.len() - text.len();
    out.extend(std::iter::repeat_n(' ', column));
    let mut first = true;
    // Two spaces in a row, which divide columns, stay.
    for word in text.split_inclusive(' ') {
        let long = word.trim_end().chars().count();
        if !first && column + long > WIDTH {
            out.truncate(out.trim_end().len());
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        }
        out.push_str(word);
        column += word.chars().count();
        first = false;
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
}
