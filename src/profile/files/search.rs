//! Searches folders for programs and debug files, and debuginfod servers (debuginfod(8)) for files by build-id,
//! which are cached where other clients cache them. Nothing is requested unless the user named servers and enabled
//! their use.

use super::place::{Part, Place, hexadecimal, same_id};
use isa::elf::Layout;
use object::ReadCache;
use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

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

/// Longest build-id that is asked for; linkers write 8 to 32 bytes.
const LONGEST_ID: usize = 64;
/// Limit of all files together, as a multiple of the limit of one.
const ALL: u32 = 10;

/// The servers, and what they have answered.
#[derive(Debug)]
pub struct Debuginfod {
    servers: Vec<String>,
    cache: PathBuf,
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    asked: HashSet<(Vec<u8>, &'static str)>,
    /// Servers that did not answer are not asked again.
    silent: HashSet<usize>,
    spent: Duration,
    notes: Vec<String>,
}

impl Debuginfod {
    /// Whether this program can ask servers.
    pub const BUILT_IN: bool = cfg!(feature = "debuginfod");

    /// Servers listed in `urls`, separated by blanks, as in `DEBUGINFOD_URLS`; files are cached in `cache`.
    pub fn new(urls: &str, cache: PathBuf, limits: Limits) -> Self {
        let mut state = State::default();
        let mut servers = Vec::new();
        // `ima:` policies and others are no servers.
        for url in urls.split_ascii_whitespace().filter(|url| url.contains("://")) {
            let shown = tma::text::name(url);
            match url.starts_with("http://") {
                true => servers.push(url.trim_end_matches('/').to_owned()),
                false => state.notes.push(format!(
                    "{shown} is not asked, only http:// servers are; `debuginfod-find` fetches files from others to \
                     the cache, where they are found"
                )),
            }
        }
        Self { servers, cache, limits, state: Mutex::new(state) }
    }

    /// Failures, for a report.
    pub fn notes(&self) -> Vec<String> {
        self.state.lock().map(|state| state.notes.clone()).unwrap_or_default()
    }

    /// Where the file is, after it was fetched if a server has it.
    pub(super) fn fetch(&self, build_id: &[u8], part: Part) -> Option<Place> {
        let name = part.of_debuginfod()?;
        let folder = self.cache.join(hexadecimal(build_id));
        let place = Place::here(folder.join(name));
        let mut state = self.state.lock().ok()?;
        let is_new = state.asked.insert((build_id.to_vec(), name));
        if is_new && (2..=LONGEST_ID).contains(&build_id.len()) {
            state.ask(self, &folder, build_id, name);
        }
        Some(place)
    }

    /// Fetches a file; it is in the cache only if it is the whole one.
    fn get(&self, server: &str, folder: &Path, build_id: &[u8], name: &str) -> Result<(), Failure> {
        let not_kept = |why: std::io::Error| Failure::File(format!("{}: {why}", folder.display()));
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(not_kept)?;
        let part = folder.join(format!("{name}.{}", std::process::id()));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        let file = options.custom_flags(libc::O_NOFOLLOW).open(&part).map_err(not_kept)?;
        let url = format!("{server}/buildid/{}/{name}", hexadecimal(build_id));
        let got = self.receive(&url, &file).and_then(|()| check(&file, build_id));
        let got = got.and_then(|()| fs::rename(&part, folder.join(name)).map_err(not_kept));
        if got.is_err() {
            let _ = fs::remove_file(&part);
            // Unless something else is in it.
            let _ = fs::remove_dir(folder);
        }
        got
    }

    #[cfg(feature = "debuginfod")]
    fn receive(&self, url: &str, file: &File) -> Result<(), Failure> {
        http::receive(url, self.limits, file)
    }

    #[cfg(not(feature = "debuginfod"))]
    #[expect(clippy::unused_self, reason = "as with a client")]
    fn receive(&self, _: &str, _: &File) -> Result<(), Failure> {
        Err(Failure::Server("this program was built without a client".into()))
    }
}

impl State {
    /// Asks one server after another.
    fn ask(&mut self, of: &Debuginfod, folder: &Path, build_id: &[u8], name: &str) {
        for (number, server) in of.servers.iter().enumerate() {
            if self.silent.contains(&number) {
                continue;
            }
            if self.spent > of.limits.time * ALL {
                return self.note(format!(
                    "debuginfod servers took over {} s: no more files are fetched",
                    (of.limits.time * ALL).as_secs()
                ));
            }
            let start = Instant::now();
            let got = of.get(server, folder, build_id, name);
            self.spent += start.elapsed();
            let shown = tma::text::name(server).into_owned();
            match got {
                Ok(()) => return,
                Err(Failure::Absent) => {}
                Err(Failure::File(why)) => {
                    let id = hexadecimal(build_id);
                    self.note(format!("{name} {id} of {shown} is not used: {why}"));
                }
                Err(Failure::Server(why)) => {
                    self.silent.insert(number);
                    self.note(format!("{shown} is not asked any more: {why}"));
                }
            }
        }
    }

    fn note(&mut self, text: String) {
        // As many as a reader looks at.
        if self.notes.len() < 8 && !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }
}

/// Whether a file has this build-id.
fn check(file: &File, build_id: &[u8]) -> Result<(), Failure> {
    let layout = Layout::read(&ReadCache::new(file));
    let layout = layout.map_err(|why| Failure::File(why.to_string()))?;
    match layout.build_id.is_some_and(|own| same_id(&own, build_id)) {
        true => Ok(()),
        false => Err(Failure::File("it has another build-id".into())),
    }
}

/// How long a file may take, and how large it may be.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Time for a file.
    pub time: Duration,
    /// Bytes of a file.
    pub bytes: u64,
}

/// Why a file was not got.
#[cfg_attr(not(feature = "debuginfod"), expect(dead_code, reason = "there is no client"))]
pub(super) enum Failure {
    /// The server does not have it.
    Absent,
    /// The response is rejected: the reason.
    File(String),
    /// The server does not answer: the reason.
    Server(String),
}

/// Receiving a file by HTTP.
#[cfg(feature = "debuginfod")]
mod http {
    use super::{Failure, Limits};
    use std::fs::File;
    use std::io::{self, Read as _};
    use ureq::Agent;

    const MOST_REDIRECTIONS: u32 = 3;

    /// Receives the file at `url`, within limits.
    pub fn receive(url: &str, limits: Limits, mut file: &File) -> Result<(), Failure> {
        let agent: Agent = Agent::config_builder()
            .timeout_global(Some(limits.time))
            .max_redirects(MOST_REDIRECTIONS)
            .http_status_as_error(false)
            .user_agent(concat!("tdtool/", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        let silent = |error: ureq::Error| Failure::Server(error.to_string());
        let mut response = agent.get(url).call().map_err(silent)?;
        match response.status().as_u16() {
            200 => {}
            404 => return Err(Failure::Absent),
            status => return Err(Failure::Server(format!("it answers with status {status}"))),
        }
        let most = limits.bytes;
        let reader = response.body_mut().with_config().limit(u64::MAX).reader();
        // One byte more shows that there are too many.
        let mut reader = reader.take(most.saturating_add(1));
        match io::copy(&mut reader, &mut file) {
            Ok(length) if length > most => {
                Err(Failure::File(format!("it has more than {most} bytes")))
            }
            Ok(_) => Ok(()),
            Err(error) => Err(Failure::Server(error.to_string())),
        }
    }
}
