//! The user's folders: <https://specifications.freedesktop.org/basedir-spec/latest/>.

use profile::files::Cache;
use std::path::PathBuf;

/// `$XDG_CACHE_HOME`, else `~/.cache`.
pub fn cache() -> Option<PathBuf> {
    absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))
}

/// `$XDG_CONFIG_HOME`, else `~/.config`.
pub fn config() -> Option<PathBuf> {
    absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))
}

/// Copies of recorded programs that no path leads to: `tdtool/programs` in the cache folder.
pub fn programs() -> Option<PathBuf> {
    Some(cache()?.join("tdtool/programs"))
}

/// Files by build-id that tdtool, perf and debuginfod's clients have collected; perf's are in `$PERF_BUILDID_DIR` or
/// `~/.debug`.
pub fn by_build_id() -> Vec<Cache> {
    let perf = absolute("PERF_BUILDID_DIR").or_else(|| Some(absolute("HOME")?.join(".debug")));
    let perf = perf.into_iter().chain(programs()).map(Cache::Perf);
    perf.chain(debuginfod().map(Cache::Debuginfod)).collect()
}

/// The cache of debuginfod's clients: `$DEBUGINFOD_CACHE_PATH`, `~/.debuginfod_client_cache` if it exists, or
/// `debuginfod_client` in the cache folder (debuginfod_find_debuginfo(3)).
pub fn debuginfod() -> Option<PathBuf> {
    let old =
        || Some(absolute("HOME")?.join(".debuginfod_client_cache")).filter(|old| old.is_dir());
    let usual = || Some(cache()?.join("debuginfod_client"));
    absolute("DEBUGINFOD_CACHE_PATH").or_else(old).or_else(usual)
}

/// The folder in an environment variable; the specification ignores relative paths.
fn absolute(variable: &str) -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os(variable)?);
    path.is_absolute().then_some(path)
}
