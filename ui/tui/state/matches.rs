//! Search and filter.

/// Whether `text` contains `wanted`; a lower-case `wanted` ignores case.
pub fn matches(text: &str, wanted: &str) -> bool {
    if wanted.chars().any(char::is_uppercase) {
        text.contains(wanted)
    } else {
        text.to_lowercase().contains(wanted)
    }
}
