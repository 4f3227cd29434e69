//! Lines no wider than a page: text wrapped after a label.

/// Columns of a report.
pub const WIDTH: usize = 100;

/// Columns that further lines are indented by where the label takes most of the page.
const HANGING: usize = 4;

/// Adds `text` after `label`, broken at blanks into lines of `width` columns, further lines indented to where
/// it began. A word longer than a line stays whole.
pub fn labelled(out: &mut String, label: &str, text: &str, width: usize) {
    let begin = label.chars().count();
    let indent = if 3 * begin > 2 * width { HANGING } else { begin };
    out.push_str(label);
    let mut column = begin;
    for (i, word) in text.split(' ').filter(|w| !w.is_empty()).enumerate() {
        let length = word.chars().count();
        let gap = usize::from(i > 0);
        if (i > 0 || begin > indent) && column + gap + length > width {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else if i > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    while out.ends_with(' ') {
        out.pop();
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_after_its_label_and_no_word_is_lost() {
        let words: Vec<String> = (0..60).map(|i| format!("word{i}")).collect();
        let mut out = String::new();
        labelled(&mut out, "  label  ", &words.join(" "), WIDTH);
        assert!(out.lines().all(|l| l.chars().count() <= WIDTH), "{out}");
        assert!(out.lines().skip(1).all(|l| l.starts_with("         word")), "{out}");
        assert_eq!(out.split_whitespace().skip(1).collect::<Vec<_>>(), words);
    }

    #[test]
    fn a_word_longer_than_a_line_stays_whole() {
        let mut out = String::new();
        labelled(&mut out, "  ", &"x".repeat(200), WIDTH);
        assert_eq!(out, format!("  {}\n", "x".repeat(200)));
    }
}
