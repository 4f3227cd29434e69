//! The markers of files.

use probe::count::Wanted;
use probe::facts::static_probes;
use probe::regions::{Edge, Label, Site, libraries};
use std::path::{Path, PathBuf};
use tma::{Error, Result};

/// Who defines markers, in their notes.
const PROVIDER: &str = "tdtool";
/// Bytes of a marker's nop.
const NOP: u64 = 5;

/// The markers of these files; of the program and its libraries if there are none.
///
/// # Errors
/// There are none.
pub(super) fn sites(program: &Path, modules: &[PathBuf]) -> Result<Vec<Site>> {
    let (mut sites, mut failed) = (Vec::new(), None);
    let linked = if modules.is_empty() { libraries(program) } else { Vec::new() };
    let own = [program.to_owned()];
    let files = if modules.is_empty() { &own[..] } else { modules };
    for path in files.iter().chain(&linked) {
        let path = path.canonicalize().unwrap_or_else(|_| path.clone());
        let found = static_probes(&path).unwrap_or_else(|why| {
            failed.get_or_insert(why);
            Vec::new()
        });
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
                .because(failed.unwrap_or_else(|| {
                    "it has no notes (.note.stapsdt) of the provider tdtool".to_owned()
                }))
                .hint(
                    "mark regions with src/markers/tdtool.h (C, C++) or the crate tdtool-markers (Rust); \
                     --module FILE names another file, such as a library",
                ))
        }
        false => Ok(sites),
    }
}
