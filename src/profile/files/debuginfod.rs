//! Files by build-id from debuginfod servers (debuginfod(8)), cached where other clients cache them. Nothing is
//! requested unless the user named servers and enabled their use.

use super::build_id::{hexadecimal, same_id};
use super::layout::Layout;
use super::part::Part;
use super::place::Place;
use super::request::{Failure, Limits};
use object::ReadCache;
use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

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
    /// Time spent so far.
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
        super::http::receive(url, self.limits, file)
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
