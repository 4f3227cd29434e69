//! Checks of everything before nodes and events.

use super::finding::{Findings, Severity};
use crate::tables::schema::TableFile;

/// Checks the head of a file known as `name`.
pub(super) fn check(name: &str, file: &TableFile, found: &mut Findings) {
    use Severity::{Error, Warning};
    if file.schema != 1 {
        let what = format!("version {} is not supported (this program supports 1)", file.schema);
        found.key(Error, "schema", what);
    }
    if !file.name.eq_ignore_ascii_case(name) {
        found.key(Error, "name", format!("`{}` in a file called `{name}`", file.name));
    }
    if !file.events.contains_key(&file.clocks) {
        found.key(Error, "clocks", format!("`{}` is not an event of this table", file.clocks));
    }
    if file.vendor != "any" && file.matches.is_empty() {
        found.key(
            Warning,
            "match",
            "no processor matches, so only --uarch selects this table (vendor `any` states that \
             intent)"
                .into(),
        );
    }
    if file.pipeline.width == 0 {
        found.key(Error, "pipeline", "a width of 0".into());
    }
    if file.source.is_empty() {
        found.key(Warning, "source", "no source of the facts is given".into());
    }
    if file.node.is_empty() && file.info.is_empty() {
        found.add(Error, None, "the table has no [[node]] and no [[info]]".into());
    }
}
