//! Text in columns of the screen: measured, cut off, padded, wrapped.

use ratatui::text::Span;
use report::format;
use std::borrow::Cow;

/// Columns that `text` takes.
pub fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { Span::raw(text).width() }
}

/// `text` in exactly `columns` columns: cut off with an ellipsis, or padded.
pub fn fit(text: &str, columns: usize) -> String {
    let long = width(text);
    if long <= columns {
        return format!("{text}{}", " ".repeat(columns - long));
    }
    if columns == 0 {
        return String::new();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let wide = width(c.encode_utf8(&mut [0; 4]));
        if used + wide > columns - 1 {
            break;
        }
        out.push(c);
        used += wide;
    }
    out.push('…');
    used += 1;
    out + &" ".repeat(columns.saturating_sub(used))
}

/// As [`fit`], of a name: names of C++ and Rust differ at both ends, so the middle is left out.
pub fn fit_middle(text: &str, columns: usize) -> String {
    if width(text) <= columns || columns < 4 {
        return fit(text, columns);
    }
    let last = (columns - 1) / 2;
    let mut tail = Vec::new();
    let mut used = 0;
    for c in text.chars().rev() {
        let wide = width(c.encode_utf8(&mut [0; 4]));
        if used + wide > last {
            break;
        }
        tail.push(c);
        used += wide;
    }
    let head = fit(text, columns - used);
    let tail: String = tail.into_iter().rev().collect();
    // A wide character that is cut off leaves a blank.
    let (head, blank) = head.split_at(head.trim_end().len());
    format!("{head}{tail}{blank}")
}

/// `text` in exactly `columns` columns, as [`fit`], aligned to the right.
pub fn fit_right(text: &str, columns: usize) -> String {
    let long = width(text);
    if long > columns { fit(text, columns) } else { " ".repeat(columns - long) + text }
}

/// A number aligned to the right: `text`, or three digits of it where `text` has no room.
pub fn fit_number(text: &str, value: f64, columns: usize) -> String {
    match width(text) <= columns {
        true => fit_right(text, columns),
        false => fit_right(&format::number(value), columns),
    }
}

/// `text` broken at blanks into lines of at most `columns` columns; longer words are broken too.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let mut word: Cow<str> = Cow::Borrowed(word);
        if used > 0 && used + 1 + width(&word) > columns {
            lines.push(String::new());
            used = 0;
        }
        while used == 0 && width(&word) > columns {
            let cut = word.char_indices().map(|(i, c)| (i, c.len_utf8()));
            let at = cut.take(columns).last().map_or(word.len(), |(i, n)| i + n);
            let rest = word[at..].to_owned();
            if rest.is_empty() {
                break;
            }
            if let Some(line) = lines.last_mut() {
                line.push_str(&word[..at]);
            }
            lines.push(String::new());
            word = Cow::Owned(rest);
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(&word);
            used += width(&word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_exact_whatever_the_text() {
        for text in ["", "abc", "a longer text", "名前の長い関数", "é"] {
            for columns in 0..12 {
                assert_eq!(width(&fit(text, columns)), columns, "{text:?} in {columns}");
                assert_eq!(width(&fit_right(text, columns)), columns, "{text:?} in {columns}");
                assert_eq!(width(&fit_middle(text, columns)), columns, "{text:?} in {columns}");
            }
        }
    }

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(fit_middle("std::vector::push_back", 12), "std::v…_back");
        assert_eq!(fit_middle("main", 6), "main  ");
    }

    #[test]
    fn wrapped_text_fits_and_loses_nothing() {
        let text = "a few words and one_that_is_longer_than_the_line itself";
        for columns in 1..30 {
            let lines = wrap(text, columns);
            assert!(lines.iter().all(|l| width(l) <= columns), "{columns}: {lines:?}");
            let letters: String = lines.concat().split_whitespace().collect();
            assert_eq!(letters, text.replace(' ', ""), "{columns}");
        }
    }
}
