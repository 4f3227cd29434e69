//! Text that fits the width of a terminal.

/// Columns that the next line of a wrapped one is indented by.
const HANGING: usize = 4;

/// `text` with lines of at most `width` columns: longer ones are wrapped between words, the next line indented;
/// longer words lose their middle. Commands of tdtool stay whole, so that they can be copied. Attributes of terminals (`ESC [ … m`) take no column.
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
