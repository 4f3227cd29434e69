//! Names of functions and files, shortened for the screen.

use crate::tui::look::{fit_middle, width};
use profile::hot::HotFunction;

/// The function without parameters; copies and exports have its whole name.
pub fn function(f: &HotFunction) -> &str {
    if f.short.is_empty() { &f.name } else { &f.short }
}

/// Words that may follow the parameters of a demangled name.
const QUALIFIERS: [&str; 4] = [" const", " volatile", " &", " [clone"];

/// A name from a document, without parameters: the last parentheses, unless they are of a template argument or an
/// operator.
pub fn short(name: &str) -> &str {
    let Some(end) = name.rfind(')') else { return name };
    let after = &name[end + 1..];
    if !after.is_empty() && !QUALIFIERS.iter().any(|word| after.starts_with(word)) {
        return name;
    }
    let mut depth = 0usize;
    for (at, c) in name[..=end].char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => continue,
        }
        if depth == 0 {
            let before = &name[..at];
            let is_name = !before.is_empty() && !before.ends_with("operator");
            return if is_name { before } else { name };
        }
    }
    name
}

/// Longest name in a sentence: what is said of it must fit, too.
const SENTENCE: usize = 48;

/// A name in a sentence.
pub fn in_sentence(name: &str) -> String {
    fit_middle(name, width(name).min(SENTENCE))
}

/// The last part of a path.
pub fn file(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// `matmul.c:17`, or why the code of the function is not available.
pub fn source(f: &HotFunction) -> String {
    match (&f.file, f.line, &f.gap) {
        (Some(path), Some(line), _) => format!("{}:{line}", file(path)),
        (Some(path), None, _) => file(path).to_owned(),
        (None, _, Some(gap)) => gap.to_string(),
        (None, _, None) => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{in_sentence, short};

    /// Names as c++filt and rustc-demangle have them.
    #[test]
    fn parameters_are_left_out_and_nothing_else() {
        for (name, expected) in [
            ("main", "main"),
            ("chase(node*)", "chase"),
            ("A::get(int) const", "A::get"),
            ("f<main::{lambda(int)#1}>(int) [clone .cold]", "f<main::{lambda(int)#1}>"),
            ("f<main::{lambda(int)#1}>", "f<main::{lambda(int)#1}>"),
            ("operator new(unsigned long)", "operator new"),
            ("A::operator()(int) const", "A::operator()"),
            ("(anonymous namespace)::f", "(anonymous namespace)::f"),
            ("(own code)", "(own code)"),
        ] {
            assert_eq!(short(name), expected);
        }
        assert_eq!(in_sentence(&"x".repeat(250)).chars().count(), 48);
        assert_eq!(in_sentence("main"), "main");
    }
}
