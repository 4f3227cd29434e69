//! Folders to search for programs and debug files.

use super::build_id::hexadecimal;
use super::debuginfod::Debuginfod;
use super::part::Part;
use super::place::Place;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Folders to search for programs and debug files.
#[derive(Debug, Clone, Default)]
pub struct SearchPaths {
    /// Folders with programs (as `perf --symfs`), searched first: a program's whole path below them, then its name
    /// alone.
    pub roots: Vec<PathBuf>,
    /// Programs wherever they lie: each stands for the modules with its build-id, or with its file name if they were
    /// recorded without one. Searched before everything else.
    pub programs: Vec<PathBuf>,
    /// Folders with debug files; `/usr/lib/debug` if empty.
    pub debug: Vec<PathBuf>,
    /// Caches of files by build-id, searched after everything else.
    pub caches: Vec<Cache>,
    /// Servers that are asked for what is found nowhere.
    pub servers: Option<Arc<Debuginfod>>,
}

/// A folder of files by build-id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cache {
    /// Cache of `perf buildid-cache`, or an unpacked `perf archive`: `.build-id/xx/yyyy/elf`.
    Perf(PathBuf),
    /// Cache of debuginfod clients: `BUILDID/debuginfo`, `BUILDID/executable`.
    Debuginfod(PathBuf),
}

impl SearchPaths {
    /// Whether the user named this place.
    pub(crate) fn is_named(&self, place: &Place) -> bool {
        self.programs.iter().any(|program| *place == Place::here(program))
    }

    /// Where a server's file with this build-id is, if servers are asked and one has it.
    pub(crate) fn fetched(&self, build_id: &[u8], part: Part) -> Option<Place> {
        self.servers.as_ref()?.fetch(build_id, part)
    }

    /// Where a file with this build-id may be: in the caches, and below roots that are caches of perf.
    pub(crate) fn cached(&self, build_id: &[u8], part: Part) -> Vec<Place> {
        // Older perf pads short build-ids with zeros; others are 20 bytes long.
        let Some((first, rest)) = build_id.split_first().filter(|(_, rest)| !rest.is_empty())
        else {
            return Vec::new();
        };
        let by_perf = |folder: &Path| {
            let inside = format!(".build-id/{first:02x}/{}/{}", hexadecimal(rest), part.of_perf());
            Place::below(folder, inside)
        };
        let roots = self.roots.iter().flat_map(|root| [root.clone(), root.join(".debug")]);
        let mut all: Vec<Place> = roots.map(|root| by_perf(&root)).collect();
        for cache in &self.caches {
            match cache {
                Cache::Perf(folder) => all.push(by_perf(folder)),
                Cache::Debuginfod(folder) => {
                    all.extend(part.of_debuginfod().map(|name| {
                        Place::below(folder, format!("{}/{name}", hexadecimal(build_id)))
                    }))
                }
            }
        }
        all
    }
}
