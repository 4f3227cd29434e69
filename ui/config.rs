//! Finds the user's folders (<https://specifications.freedesktop.org/basedir-spec/latest/>), and reads the config
//! file: theme, characters and keys of the drill-down.

use crate::keymap::Keymap;
use crate::message;
use crate::terminal::Theme;
use profile::files::Cache;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tma::{Error, Result};

/// `$XDG_CACHE_HOME`, else `~/.cache`.
pub fn cache_folder() -> Option<PathBuf> {
    absolute_folder("XDG_CACHE_HOME").or_else(|| Some(absolute_folder("HOME")?.join(".cache")))
}

/// `$XDG_CONFIG_HOME`, else `~/.config`.
fn config_folder() -> Option<PathBuf> {
    absolute_folder("XDG_CONFIG_HOME").or_else(|| Some(absolute_folder("HOME")?.join(".config")))
}

/// Copies of recorded programs that no path leads to: `tdtool/programs` in the cache folder.
pub fn kept_programs() -> Option<PathBuf> {
    Some(cache_folder()?.join("tdtool/programs"))
}

/// Files by build-id that tdtool, perf and debuginfod's clients have collected; perf's are in `$PERF_BUILDID_DIR` or
/// `~/.debug`.
pub fn by_build_id() -> Vec<Cache> {
    let perf = absolute_folder("PERF_BUILDID_DIR")
        .or_else(|| Some(absolute_folder("HOME")?.join(".debug")));
    let perf = perf.into_iter().chain(kept_programs()).map(Cache::Perf);
    perf.chain(debuginfod_cache().map(Cache::Debuginfod)).collect()
}

/// The cache of debuginfod's clients: `$DEBUGINFOD_CACHE_PATH`, `~/.debuginfod_client_cache` if it exists, or
/// `debuginfod_client` in the cache folder (debuginfod_find_debuginfo(3)).
pub fn debuginfod_cache() -> Option<PathBuf> {
    let old = || {
        Some(absolute_folder("HOME")?.join(".debuginfod_client_cache")).filter(|old| old.is_dir())
    };
    let usual = || Some(cache_folder()?.join("debuginfod_client"));
    absolute_folder("DEBUGINFOD_CACHE_PATH").or_else(old).or_else(usual)
}

/// The folder in an environment variable; the specification ignores relative paths.
fn absolute_folder(variable: &str) -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os(variable)?);
    path.is_absolute().then_some(path)
}

/// The choices in effect.
#[derive(Debug, Clone, Default)]
pub struct Config {
    pub theme: Theme,
    pub ascii: bool,
    /// Whether the drill-down takes the mouse; the terminal then selects text with Shift only.
    pub mouse: bool,
    pub keys: Keymap,
    /// The file that was read; `None`: there is none.
    pub read: Option<PathBuf>,
}

/// The content of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Content {
    theme: Theme,
    ascii: bool,
    mouse: bool,
    keys: BTreeMap<String, Keys>,
}

/// The keys of an action.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a key or a list of keys, as \"j\" or [\"j\", \"Down\"]")]
enum Keys {
    One(String),
    Many(Vec<String>),
}

/// Reads the file that `--config` names, or the default one if it exists.
///
/// # Errors
/// The named file cannot be read (an unreadable default file is a note); its content is invalid.
pub fn load(named: Option<&Path>) -> Result<Config> {
    let Some(path) = named.map(Path::to_owned).or_else(default_place) else {
        return Ok(Config::default());
    };
    let text = match tma::files::read_text(&path, tma::files::LONGEST_TEXT) {
        Ok(text) => text,
        Err(e) if named.is_none() && e.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Config::default());
        }
        Err(e) if named.is_none() && e.kind() == std::io::ErrorKind::PermissionDenied => {
            message::note(&format!("the config file {} cannot be read: {e}", path.display()));
            return Ok(Config::default());
        }
        Err(e) => {
            let what = format!("cannot read the config file {}", path.display());
            let remedy = "`tdtool keys --toml` prints one with every setting";
            return Err(Error::usage(what).because(e).hint(remedy));
        }
    };
    parse(&text, &path)
}

/// `tdtool/config.toml` in the user's config folder.
pub fn default_place() -> Option<PathBuf> {
    Some(config_folder()?.join("tdtool/config.toml"))
}

fn parse(text: &str, path: &Path) -> Result<Config> {
    let place = path.display();
    let content: Content = toml::from_str(text).map_err(|e| {
        Error::usage(format!("the config file {place} is invalid"))
            .because(e.to_string().trim_end())
            .hint("`tdtool keys --toml` prints one with every setting")
    })?;
    let Content { theme, ascii, mouse, keys } = content;
    let keys = keys.into_iter().map(|(action, keys)| match keys {
        Keys::One(key) => (action, vec![key]),
        Keys::Many(keys) => (action, keys),
    });
    let keys = Keymap::with(&keys.collect()).map_err(|e| {
        let cause = e.cause().map_or(e.what().to_owned(), |why| format!("{}: {why}", e.what()));
        let error = Error::usage(format!("the config file {place} is invalid")).because(cause);
        error.hint(e.remedy().unwrap_or("`tdtool keys` lists actions and keys"))
    })?;
    Ok(Config { theme, ascii, mouse, keys, read: Some(path.to_owned()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config> {
        parse(text, Path::new("config.toml"))
    }

    #[test]
    fn every_setting_is_read() {
        let config = read("theme = \"contrast\"\nascii = true\nmouse = true\n[keys]\ndown = \"x\"")
            .expect("read");
        assert_eq!((config.theme, config.ascii, config.mouse), (Theme::Contrast, true, true));
        assert_eq!(config.keys.key(crate::keymap::Command::Down), "x");
    }

    #[test]
    fn the_template_is_valid_with_and_without_its_comment_signs() {
        let template = crate::keymap::template();
        read(&template).expect("as it is printed");
        let on: Vec<&str> = template
            .lines()
            .map(|l| l.strip_prefix("# ").filter(|l| l.contains(" = ")).unwrap_or(l))
            .collect();
        read(&on.join("\n")).expect("with every setting");
    }

    #[test]
    fn errors_name_the_place_and_the_valid_values() {
        let message = |text: &str| {
            let e = read(text).expect_err("an error");
            format!("{}\n{}", e.what(), e.cause().unwrap_or(""))
        };
        let unknown = message("theme = \"solarized\"");
        assert!(unknown.contains("line 1") && unknown.contains("contrast"), "{unknown}");
        assert!(message("colour = 1").contains("theme"), "the valid fields are listed");
        assert!(
            message("[keys]\ndown = 3").contains("a key or a list"),
            "{}",
            message("[keys]\ndown = 3")
        );
        assert!(message("[keys]\ndown = \"q\"").contains("keys.quit"));
    }
}
