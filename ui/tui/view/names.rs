//! Names of functions and files, shortened for the screen.

use profile::hot::HotFunction;

/// The function without parameters; copies and exports have its whole name.
pub fn function(f: &HotFunction) -> &str {
    if f.short.is_empty() { &f.name } else { &f.short }
}

/// A name from a document, without parameters.
pub fn short(name: &str) -> &str {
    match name.split_once('(') {
        Some((short, _)) if !short.is_empty() => short,
        _ => name,
    }
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
        (None, _, Some(gap)) => gap.clone(),
        (None, _, None) => "-".to_owned(),
    }
}
