//! Functions of a profile by the names that people type.

use profile::hot::Profile;
use tma::{Error, Result};

/// The hottest function that `name` names: in full, or without parameters, template arguments and namespaces.
///
/// # Errors
/// Several functions are called so.
pub(super) fn function(profile: &Profile, name: &str) -> Result<Option<usize>> {
    let all = &profile.functions;
    let position = |whole: &str| all.iter().position(|f| f.name == whole);
    if let Some(index) = position(name).or_else(|| all.iter().position(|f| f.short == name)) {
        return Ok(Some(index));
    }
    // C++ names come with parameters and template arguments, which users leave out.
    let mut same: Vec<&str> = all.iter().map(|f| f.name.as_str()).collect();
    same.retain(|whole| plain(whole) == name || last(plain(whole)) == name);
    same.sort_unstable();
    same.dedup();
    match same.as_slice() {
        [] => Ok(None),
        [only] => Ok(position(only)),
        _ => Err(Error::usage(format!("several functions are called {name}"))
            .because(same.join("\n"))
            .hint("give one of these names in full")),
    }
}

/// The error for a function without samples.
pub(super) fn none_called(profile: &Profile, name: &str) -> Error {
    let error = Error::failed(format!("no samples in a function {name}"));
    let known = profile.functions.iter().map(|f| f.name.as_str());
    let known = known.flat_map(|whole| [whole, plain(whole), last(plain(whole))]);
    match tma::error::nearest(name, known) {
        Some(other) => error.hint(format!("did you mean `{other}`?")),
        None => with_hottest(profile, error),
    }
}

/// The error with the functions that have samples.
fn with_hottest(profile: &Profile, error: Error) -> Error {
    /// Functions that are named.
    const NAMED: usize = 3;
    let hottest: Vec<&str> =
        profile.functions.iter().take(NAMED).map(|f| f.short.as_str()).collect();
    match hottest.is_empty() {
        true => error.because("there are no samples"),
        false => error
            .because("its name is another one, it ran too little, or the compiler inlined it")
            .hint(format!("the hottest are {}; --functions N lists more", hottest.join(", "))),
    }
}

/// A function's name up to its parameters and template arguments: `dot` of `dot(float const*, int)`. The names
/// `operator()` and `operator<` are left whole.
fn plain(name: &str) -> &str {
    match name.find(['(', '<']) {
        Some(end) if end > 0 && !name.contains("operator") => &name[..end],
        _ => name,
    }
}

/// A name without its namespaces and result type.
fn last(name: &str) -> &str {
    let name = name.rsplit("::").next().unwrap_or(name);
    name.rsplit(' ').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpp_names_are_found_without_what_nobody_types() {
        assert_eq!(plain("dot(float const*, float const*, int)"), "dot");
        assert_eq!(plain("sum<int, std::vector<int> >(int)"), "sum");
        assert_eq!(last(plain("void kernels::run<float>(int)")), "run");
        assert_eq!(plain("S::operator()(int)"), "S::operator()(int)");
        assert_eq!(plain("(anonymous namespace)::f"), "(anonymous namespace)::f");
    }
}
