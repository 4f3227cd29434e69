//! The callers of a function.

use super::named::{function, none_called};
use profile::hot::{Caller, Profile};
use tma::{Error, Result};

/// The callers of the function that is called so, those with most samples first.
///
/// # Errors
/// There are no call chains, or no such function, or none that was called.
pub(super) fn callers(profile: &mut Profile, name: &str) -> Result<Vec<Caller>> {
    if !profile.has_chains() {
        return Err(Error::failed(format!("the callers of {name} are unknown"))
            .because("the samples have no call chains")
            .hint("record with -g"));
    }
    let found = profile.callers(name);
    if !found.is_empty() {
        return Ok(found);
    }
    let found = match function(profile, name)? {
        Some(index) => profile.callers(&profile.functions[index].name.clone()),
        None => found,
    };
    if found.is_empty() {
        return Err(none_called(profile, name));
    }
    Ok(found)
}
