//! The callers and the callees of a function.

use super::named::{function, none_called};
use profile::hot::Profile;
use report::documents::report_code::{Callees, Callers};
use tma::{Error, Result};

/// The callers of the function that is called so, those with most samples first, and theirs.
///
/// # Errors
/// There are no call chains, or no such function.
pub(super) fn callers(profile: &mut Profile, name: &str) -> Result<Callers> {
    let whole = known(profile, name, "callers")?;
    let (callers, tree) = (profile.callers(&whole), profile.call_trees(&whole).callers);
    Ok(Callers { function: name.to_owned(), callers, tree })
}

/// The functions that the function calls, likewise.
///
/// # Errors
/// As [`callers`].
pub(super) fn callees(profile: &mut Profile, name: &str) -> Result<Callees> {
    let whole = known(profile, name, "callees")?;
    Ok(Callees { function: name.to_owned(), tree: profile.call_trees(&whole).callees })
}

/// The name of the function in call chains.
fn known(profile: &mut Profile, name: &str, what: &str) -> Result<String> {
    if !profile.has_chains() {
        return Err(Error::failed(format!("the {what} of {name} are unknown"))
            .because("the samples have no call chains")
            .hint("record with -g: `tdtool record -g -o FILE -- COMMAND`"));
    }
    if profile.calls(name).samples > 0 {
        return Ok(name.to_owned());
    }
    let whole = function(profile, name)?.map(|index| profile.functions[index].name.clone());
    whole.filter(|whole| profile.calls(whole).samples > 0).ok_or_else(|| none_called(profile, name))
}
