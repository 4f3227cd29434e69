//! Fits text and tables to the width of the page or terminal that shows them.

/// Fewest columns that text is fitted to.
const NARROWEST: usize = 40;
/// Columns that cells leave to the place and name after them.
const AFTER_CELLS: usize = 24;
/// Fewest columns of a name, where it has more.
const NAME: usize = 12;

/// A terminal of so many columns, or a file or pipe, where any line has room.
#[derive(Debug, Clone, Copy, Default)]
pub struct Page {
    width: Option<usize>,
}

/// Rows of a table: at most so many, on this page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows {
    pub most: usize,
    pub page: Page,
}

/// How much a cell of a row is worth: on a narrow page the least worth are left out first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Worth {
    /// Shown on wide pages only.
    Little,
    /// Left out on narrow pages.
    Some,
    /// Never left out.
    All,
}

/// A cell: its worth, and its text with the gap before it, as wide in all rows of a table.
pub type Cell = (Worth, String);

/// Text after the cells of a row.
#[derive(Debug, Clone, Copy, Default)]
pub struct Subject<'a> {
    /// Address or range.
    pub place: &'a str,
    /// Name; its middle may be left out.
    pub name: &'a str,
    /// Remark after the name.
    pub after: &'a str,
}

/// Says how many rows of a table are left out, if any.
pub(crate) fn more_in_json(out: &mut String, left: usize, rows: &str) {
    if left > 0 {
        out.push_str(&format!("{left:>14}  {rows} more (all in JSON)\n"));
    }
}

impl Page {
    /// A terminal with these columns; `None`: anything else.
    pub fn of(columns: Option<usize>) -> Self {
        Self { width: columns.map(|width| width.max(NARROWEST)) }
    }

    /// Its columns, if it is a terminal.
    pub fn width(self) -> Option<usize> {
        self.width
    }

    /// Whether the page has no room for this many columns.
    pub fn is_below(self, columns: usize) -> bool {
        self.width.is_some_and(|width| width < columns)
    }

    /// The text, with no line wider than the page.
    pub fn fitted(self, text: String) -> String {
        match self.width {
            Some(width) => fit(&text, width),
            None => text,
        }
    }

    /// A name with at most `most` columns, on a page that is one of a terminal.
    pub fn cut(self, name: &str, most: usize) -> String {
        match self.width {
            Some(_) => elided(name, most),
            None => name.to_owned(),
        }
    }

    /// Adds the heading of a table, which ends in the name of its rows.
    pub(crate) fn heading(self, out: &mut String, cells: &[Cell], name: &str) {
        self.row(out, cells, Subject { after: name, ..Subject::default() });
    }

    /// Adds a row of a table.
    pub fn row(self, out: &mut String, cells: &[Cell], subject: Subject<'_>) {
        let before: String = self.kept(cells).map(|(_, text)| text.as_str()).collect();
        let Subject { place, name, after } = subject;
        let room = |place: &str| {
            self.width.map(|width| {
                let used = columns(&before) + 2 + columns(place) + usize::from(!place.is_empty());
                width.saturating_sub(used)
            })
        };
        let wanted = columns(name) + columns(after);
        // The beginning of a range is enough to find it.
        let short = place.split_once("..").map_or(place, |(start, _)| start);
        let has_room = |place: &&str| room(place).is_none_or(|room| room >= wanted.min(NAME));
        let place = [place, short].into_iter().find(has_room).unwrap_or(short);
        let name = match room(place) {
            Some(room) if wanted > room => {
                elided(name, room.saturating_sub(columns(after)).max(NAME).min(room.max(NAME)))
            }
            _ => name.to_owned(),
        };
        let gap = if place.is_empty() || name.is_empty() { "" } else { " " };
        let line = format!("{before}  {place}{gap}{name}{after}");
        out.push_str(line.trim_end());
        out.push('\n');
    }

    /// The cells that leave room for what follows them.
    fn kept(self, cells: &[Cell]) -> impl Iterator<Item = &Cell> {
        let all = |least: Worth| cells.iter().filter(move |(worth, _)| *worth >= least);
        let fits = |least: &Worth| {
            let taken: usize = all(*least).map(|(_, text)| columns(text)).sum();
            self.width.is_none_or(|width| taken + AFTER_CELLS <= width)
        };
        let least = [Worth::Little, Worth::Some].into_iter().find(fits).unwrap_or(Worth::All);
        all(least)
    }
}

/// Columns that the next line of a wrapped one is indented by.
const HANGING: usize = 4;

/// `text` with lines of at most `width` columns: longer ones are wrapped between words, the next line indented;
/// longer words lose their middle. Commands of tdtool stay whole, so that they can be copied. Attributes of terminals
/// (`ESC [ … m`) take no column.
pub fn fit(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        match columns(line) > width && !is_command(line) {
            true => wrap(&mut out, line, width),
            false => out.push_str(line),
        }
        out.push_str(end);
    }
    out
}

fn is_command(line: &str) -> bool {
    line.trim_start().trim_start_matches('`').starts_with("tdtool ")
}

/// `name` with at most `most` characters: names of C++ and Rust differ at both ends, so the middle is left out.
pub fn elided(name: &str, most: usize) -> String {
    let length = name.chars().count();
    if length <= most {
        return name.to_owned();
    }
    let kept = most.saturating_sub(3);
    let head: String = name.chars().take(kept.div_ceil(2)).collect();
    let tail: String = name.chars().skip(length - kept / 2).collect();
    format!("{head}...{tail}")
}

fn wrap(out: &mut String, line: &str, width: usize) {
    let indent = line.chars().take_while(|c| *c == ' ').count();
    let next = (indent + HANGING).min(width / 3);
    let mut column = 0;
    for word in line.split_inclusive(' ') {
        let bare = word.trim_end_matches(' ');
        if column > next && column + columns(bare) > width {
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
            out.push_str(&" ".repeat(next));
            column = next;
        }
        let is_long = columns(bare) > width - column;
        let shown = if is_long { shortened(bare, width - column) } else { bare.to_owned() };
        column += columns(&shown);
        out.push_str(&shown);
        let gap = (word.len() - bare.len()).min(width.saturating_sub(column));
        out.push_str(&" ".repeat(gap));
        column += gap;
    }
    out.truncate(out.trim_end_matches(' ').len());
}

/// As [`elided`], of a word between attributes.
fn shortened(word: &str, most: usize) -> String {
    let begin = match word.starts_with('\x1b') {
        true => word.find('m').map_or(0, |end| end + 1),
        false => 0,
    };
    let end = word[begin..].find('\x1b').map_or(word.len(), |at| begin + at);
    format!("{}{}{}", &word[..begin], elided(&word[begin..end], most), &word[end..])
}

/// Columns that a line takes.
pub fn columns(line: &str) -> usize {
    let mut in_attribute = false;
    let shown = line.chars().filter(|c| {
        let was = in_attribute;
        in_attribute = *c == '\x1b' || in_attribute && *c != 'm';
        !was && !in_attribute
    });
    shown.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(width: Option<usize>, after: &str) -> String {
        let cells = [(Worth::All, format!("{:>14}", 7)), (Worth::Little, "  derived ".to_owned())];
        let name = format!("std::{}::push", "very_long::".repeat(9));
        let mut out = String::new();
        let page = Page::of(width);
        page.row(&mut out, &cells, Subject { place: "0x401140..0x401152", name: &name, after });
        page.fitted(out)
    }

    #[test]
    fn a_row_loses_cells_and_the_middle_of_its_name_before_its_place() {
        let whole = row(None, "");
        assert!(whole.contains("very_long::".repeat(9).as_str()), "{whole}");
        let wide = row(Some(80), "");
        assert!(wide.contains("derived   0x401140..0x401152 std::very"), "{wide}");
        assert!(wide.ends_with("::push\n") && wide.chars().count() == 81, "{wide}");
        let narrow = row(Some(40), "");
        assert_eq!(narrow, format!("{:>14}  0x401140 std::v...::push\n", 7));
        let noted =
            row(Some(80), ": it has no known end, and a reason that needs more than one line");
        assert!(noted.lines().all(|line| line.chars().count() <= 80), "{noted}");
        assert!(noted.contains(" std::...push:") || noted.contains("::push:"), "{noted}");
    }

    #[test]
    fn no_line_is_wider_and_no_word_is_lost() {
        let text =
            "  Frontend Bound  ▋    3.2 %  running 25 %  not measured: it was not counted\nshort\n";
        for width in [20, 40, 80] {
            let fitted = fit(text, width);
            assert!(fitted.lines().all(|line| line.chars().count() <= width), "{width}: {fitted}");
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(words(&fitted), words(text));
        }
        assert_eq!(fit(text, 80), text, "what fits stays as it is");
        assert_eq!(columns("\x1b[1;31mred\x1b[0m"), 3);
        let painted = fit("\x1b[1ma_very_long_word_in_bold\x1b[0m", 12);
        assert_eq!(painted, "\x1b[1ma_ver...bold\x1b[0m");
    }

    #[test]
    fn long_names_keep_both_ends() {
        let long = format!("std::{}::push", "very_long::".repeat(9));
        let cut = elided(&long, 48);
        assert_eq!(cut.chars().count(), 48);
        assert!(cut.starts_with("std::very") && cut.ends_with("::push"), "{cut}");
        assert!(fit(&long, 40).chars().count() <= 40);
    }
}
