//! The markers of files.

use probe::count::Wanted;
use probe::facts::static_probes;
use probe::regions::{Edge, Label, Site};
use std::path::{Path, PathBuf};
use tma::{Error, Result};

/// Who defines markers, in their notes.
const PROVIDER: &str = "tdtool";
/// Bytes of a marker's nop.
const NOP: u64 = 5;

/// The markers of these files, of the program if there are none.
///
/// # Errors
/// There are none.
pub(super) fn sites(program: &Path, modules: &[PathBuf]) -> Result<Vec<Site>> {
    let mut sites = Vec::new();
    let own = [program.to_owned()];
    let files = if modules.is_empty() { &own[..] } else { modules };
    for path in files {
        let path = path.canonicalize().unwrap_or_else(|_| path.clone());
        let found = static_probes(&path).map_err(|why| {
            Error::failed(format!("{} has no markers", path.display())).because(why).hint(
                "--module FILE names the ELF file with markers, if the command only starts it",
            )
        })?;
        let own = found.iter().filter(|probe| probe.provider == PROVIDER);
        sites.extend(own.filter_map(|probe| {
            let edge = match probe.name.as_str() {
                "begin" => Edge::Begin,
                "end" => Edge::End,
                _ => return None,
            };
            let code = Wanted { path: path.clone(), range: probe.at..probe.at + NOP };
            Some(Site { code, at: probe.at, edge, label: Label::Register(probe.register()?) })
        }));
    }
    match sites.is_empty() {
        true => {
            let names: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
            Err(Error::failed(format!("{} has no markers", names.join(", ")))
                .because("there are no notes (.note.stapsdt) of the provider tdtool in it")
                .hint(
                    "mark regions with src/markers/tdtool.h (C, C++) or the crate tdtool-markers (Rust); \
                     --module FILE names another file, such as a library",
                ))
        }
        false => Ok(sites),
    }
}
