//! A change of a file as `patch -p1` and `git apply` read it.

use std::fmt::Write as _;

/// Unchanged lines that are shown before and after.
const AROUND: usize = 3;

/// The change of a text as one hunk; `path` is relative.
pub(super) fn patch(path: &str, before: &str, after: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) =
        (before.split_inclusive('\n').collect(), after.split_inclusive('\n').collect());
    let same = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let left = a.len().min(b.len()) - same;
    let ends = a.iter().rev().zip(b.iter().rev()).take(left).take_while(|(a, b)| a == b).count();
    let start = same.saturating_sub(AROUND);
    let shown = ends.min(AROUND);
    let (old, new) = (a.len() - ends, b.len() - ends);
    let mut out = format!("--- a/{path}\n+++ b/{path}\n");
    let (olds, news) = (old + shown - start, new + shown - start);
    let _ = writeln!(out, "@@ -{},{olds} +{},{news} @@", start + 1, start + 1);
    let mut lines = |mark: char, lines: &[&str]| {
        for line in lines {
            let _ = write!(out, "{mark}{line}");
            if !line.ends_with('\n') {
                out += "\n\\ No newline at end of file\n";
            }
        }
    };
    lines(' ', &a[start..same]);
    lines('-', &a[same..old]);
    lines('+', &b[same..new]);
    lines(' ', &a[old..old + shown]);
    out
}

/// Where lines were added, from 1, and how many.
pub(super) fn added(before: &str, after: &str) -> (u32, u32) {
    let same = before.lines().zip(after.lines()).take_while(|(a, b)| a == b).count();
    let more = after.lines().count().saturating_sub(before.lines().count());
    (same as u32 + 1, more as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `diff -u` writes it.
    #[test]
    fn a_patch_has_three_lines_around_the_change() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9";
        let after = "1\n2\n3\n4\nnew\n5\n6\n7\n8\n9";
        let text = "--- a/x.c\n+++ b/x.c\n@@ -2,6 +2,7 @@\n 2\n 3\n 4\n+new\n 5\n 6\n 7\n";
        assert_eq!(patch("x.c", before, after), text);
        assert_eq!(added(before, after), (5, 1));
        let last = "--- a/x.c\n+++ b/x.c\n@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+b\n";
        assert_eq!(patch("x.c", "a", "b\n"), last);
    }
}
