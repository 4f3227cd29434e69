//! Search and filter.

/// Whether `text` contains `wanted`; a lower-case `wanted` ignores case.
pub fn matches(text: &str, wanted: &str) -> bool {
    if is_exact(wanted) { text.contains(wanted) } else { text.to_lowercase().contains(wanted) }
}

/// The same where the text in lower case is at hand, as it is for lists of thousands of rows.
pub fn matches_lower(lower: Option<&str>, wanted: &str, text: impl Fn() -> String) -> bool {
    match lower {
        _ if wanted.is_empty() => true,
        Some(lower) if !is_exact(wanted) => lower.contains(wanted),
        _ => matches(&text(), wanted),
    }
}

fn is_exact(wanted: &str) -> bool {
    wanted.chars().any(char::is_uppercase)
}
