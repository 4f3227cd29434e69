//! The config file: keys, theme and characters of the interactive drill-down.

use crate::tui::keymap::Keymap;
use crate::tui::theme::Theme;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tma::{Error, Result};

/// What was chosen.
#[derive(Debug, Clone, Default)]
pub struct Config {
    pub theme: Theme,
    pub ascii: bool,
    pub keys: Keymap,
    /// Where it was read; `None`: there is no file, and everything is as it comes.
    pub read: Option<PathBuf>,
}

/// The file as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Written {
    theme: Theme,
    ascii: bool,
    keys: BTreeMap<String, Keys>,
}

/// One key, or several.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a key or a list of keys, as \"j\" or [\"j\", \"Down\"]")]
enum Keys {
    One(String),
    Many(Vec<String>),
}

/// Reads the file that was named, or the usual one if it is there.
///
/// # Errors
/// The named one cannot be read (the usual one, out of reach, is a note); what stands in it cannot be understood.
pub fn load(named: Option<&Path>) -> Result<Config> {
    let Some(path) = named.map(Path::to_owned).or_else(usual_place) else {
        return Ok(Config::default());
    };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if named.is_none() && e.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Config::default());
        }
        Err(e) if named.is_none() && e.kind() == std::io::ErrorKind::PermissionDenied => {
            let what = format!("the config file {} cannot be read: {e}", path.display());
            crate::failure::tell("note", &what, None, None);
            return Ok(Config::default());
        }
        Err(e) => {
            return Err(
                Error::usage(format!("cannot read the config file {}", path.display())).because(e)
            );
        }
    };
    parse(&text, &path)
}

/// `$XDG_CONFIG_HOME/tdtool/config.toml`, else the one below `~/.config`
/// (<https://specifications.freedesktop.org/basedir-spec/latest/>: relative paths do not count).
pub fn usual_place() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let config = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
    Some(config.join("tdtool/config.toml"))
}

fn parse(text: &str, path: &Path) -> Result<Config> {
    let place = path.display();
    let written: Written = toml::from_str(text).map_err(|e| {
        Error::usage(format!("the config file {place} cannot be understood"))
            .because(e.to_string().trim_end())
            .hint("`tdtool keys --toml` prints one with everything in it")
    })?;
    let keys = written.keys.into_iter().map(|(action, keys)| match keys {
        Keys::One(key) => (action, vec![key]),
        Keys::Many(keys) => (action, keys),
    });
    let keys = Keymap::with(&keys.collect()).map_err(|e| {
        let cause = e.cause().map_or(e.what().to_owned(), |why| format!("{}: {why}", e.what()));
        let error = Error::usage(format!("the config file {place} cannot be used")).because(cause);
        error.hint(e.remedy().unwrap_or("`tdtool keys` lists actions and keys"))
    })?;
    Ok(Config { theme: written.theme, ascii: written.ascii, keys, read: Some(path.to_owned()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config> {
        parse(text, Path::new("config.toml"))
    }

    #[test]
    fn everything_can_be_chosen() {
        let config =
            read("theme = \"contrast\"\nascii = true\n[keys]\ndown = \"x\"").expect("read");
        assert_eq!((config.theme, config.ascii), (Theme::Contrast, true));
        assert_eq!(config.keys.key(crate::tui::action::Command::Down), "x");
    }

    #[test]
    fn the_template_is_a_config_file_with_or_without_its_comment_signs() {
        let template = crate::tui::keymap::template();
        read(&template).expect("as it is printed");
        let on: Vec<&str> = template
            .lines()
            .map(|l| l.strip_prefix("# ").filter(|l| l.contains(" = ")).unwrap_or(l))
            .collect();
        read(&on.join("\n")).expect("with everything switched on");
    }

    #[test]
    fn errors_name_the_place_and_what_is_known() {
        let said = |text: &str| {
            let e = read(text).expect_err("an error");
            format!("{}\n{}", e.what(), e.cause().unwrap_or(""))
        };
        let unknown = said("theme = \"solarized\"");
        assert!(unknown.contains("line 1") && unknown.contains("contrast"), "{unknown}");
        assert!(said("colour = 1").contains("theme"), "known fields are told");
        assert!(
            said("[keys]\ndown = 3").contains("a key or a list"),
            "{}",
            said("[keys]\ndown = 3")
        );
        assert!(said("[keys]\ndown = \"q\"").contains("keys.quit"));
    }
}
