//! Standard input of a command that runs several times: each run reads what the first one could.

use nix::sys::signal::SigSet;
use std::fs::{File, OpenOptions, remove_file};
use std::io::{self, ErrorKind, PipeWriter, Read as _, Seek as _, SeekFrom, Write as _, pipe};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{Builder, sleep};
use std::time::Duration;
use tma::error::{Error, Result};

/// Bytes that are copied at a time: as many as a pipe has.
const CHUNK: usize = 64 << 10;
/// Most bytes of a pipe that are kept: an endless one would fill the disk.
const LONGEST: u64 = 1 << 30;
/// Time until a pipe that had nothing is read again, where reading does not wait.
const AGAIN: Duration = Duration::from_millis(1);

/// Standard input of this process, for runs that follow one another.
#[derive(Debug, Clone)]
pub struct Input(Arc<Mutex<State>>);

impl PartialEq for Input {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Input {}

#[derive(Debug)]
enum State {
    /// A file that the first run reads where this process would.
    File { file: File, start: u64, has_run: bool },
    /// A pipe or socket that nothing has read yet.
    Unread(File),
    /// What the first run read of it is here.
    Kept(Kept),
}

#[derive(Debug)]
struct Kept {
    file: File,
    /// The first run has ended: what comes later is not its input.
    is_over: Arc<AtomicBool>,
    /// Some of it could not be read or written, or is too long.
    is_cut: Arc<AtomicBool>,
}

impl Input {
    /// That of this process, the same for all who ask; `None` as of [`Self::of`].
    pub(crate) fn own() -> Option<Self> {
        static OWN: OnceLock<Option<Input>> = OnceLock::new();
        let own = || Self::of(File::from(io::stdin().as_fd().try_clone_to_owned().ok()?));
        OWN.get_or_init(own).clone()
    }

    /// That of an open file; `None` where each run reads on: a terminal or another device.
    fn of(mut file: File) -> Option<Self> {
        let kind = file.metadata().ok()?.file_type();
        let state = if kind.is_file() {
            let start = file.stream_position().ok()?;
            State::File { file, start, has_run: false }
        } else if kind.is_fifo() || kind.is_socket() {
            State::Unread(file)
        } else {
            return None;
        };
        Some(Self(Arc::new(Mutex::new(state))))
    }

    /// Standard input of the next run; `None`: that of this process.
    ///
    /// # Errors
    /// What the first run read is not known.
    pub(crate) fn next(&self) -> Result<Option<OwnedFd>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.next().map_err(|error| {
            Error::failed("the command's standard input cannot be read again")
                .because(error)
                .hint("give it as a file: < FILE")
        })
    }
}

impl State {
    fn next(&mut self) -> io::Result<Option<OwnedFd>> {
        match self {
            Self::File { has_run, .. } if !*has_run => {
                *has_run = true;
                Ok(None)
            }
            Self::File { file, start, .. } => match again(file, *start) {
                Ok(file) => Ok(Some(file.into())),
                // Another user's file: all runs read through one descriptor.
                Err(_) => file.seek(SeekFrom::Start(*start)).map(|_| None),
            },
            Self::Unread(file) => {
                let (from, file) = (file.try_clone()?, unnamed()?);
                let (is_over, is_cut) = <(Arc<AtomicBool>, Arc<AtomicBool>)>::default();
                let copy = Copying {
                    kept: Some(file.try_clone()?),
                    is_over: Arc::clone(&is_over),
                    is_cut: Arc::clone(&is_cut),
                };
                *self = Self::Kept(Kept { file, is_over, is_cut });
                copied(from, copy).map(Some)
            }
            Self::Kept(kept) => {
                kept.is_over.store(true, Ordering::SeqCst);
                if kept.is_cut.load(Ordering::SeqCst) {
                    return Err(io::Error::other(
                        "it could not be kept: it is longer than 1 GiB, or there is no room",
                    ));
                }
                // A pipe as before: programs may read files otherwise.
                copied(again(&kept.file, 0)?, Copying::default()).map(Some)
            }
        }
    }
}

/// Opens an open file once more, to be read from `start` on.
fn again(file: &File, start: u64) -> io::Result<File> {
    let mut file = File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    file.seek(SeekFrom::Start(start))?;
    Ok(file)
}

/// A temporary file without a name.
fn unnamed() -> io::Result<File> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::SeqCst);
    let name = format!("tdtool-input-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let file =
        OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    remove_file(path)?;
    Ok(file)
}

/// A pipe to which a thread of its own copies `from`.
fn copied(from: File, copy: Copying) -> io::Result<OwnedFd> {
    let (reader, writer) = pipe()?;
    Builder::new().spawn(move || copy.run(from, writer))?;
    Ok(reader.into())
}

#[derive(Default)]
struct Copying {
    /// Where it is kept, too.
    kept: Option<File>,
    is_over: Arc<AtomicBool>,
    is_cut: Arc<AtomicBool>,
}

impl Copying {
    /// Copies until the end, or until nothing reads it any more.
    fn run(mut self, mut from: File, mut to: PipeWriter) {
        // Other threads wait for signals.
        let _ = SigSet::all().thread_block();
        let (mut chunk, mut number) = (vec![0; CHUNK], 0);
        loop {
            let read = match from.read(&mut chunk) {
                Ok(0) => return,
                Ok(read) => &chunk[..read],
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    sleep(AGAIN);
                    continue;
                }
                Err(_) => return self.cut(),
            };
            if self.is_over.load(Ordering::SeqCst) {
                return;
            }
            number += read.len() as u64;
            if number > LONGEST
                || self.kept.as_mut().is_some_and(|kept| kept.write_all(read).is_err())
            {
                self.cut();
            }
            if to.write_all(read).is_err() {
                return;
            }
        }
    }
}

impl Copying {
    /// Keeps nothing: what is on the disk is given back.
    fn cut(&mut self) {
        self.is_cut.store(true, Ordering::SeqCst);
        if let Some(kept) = self.kept.take() {
            let _ = kept.set_len(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::spawn;

    fn read(input: &Input, most: u64) -> String {
        let run = input.next().expect("an input").expect("a descriptor");
        let mut text = String::new();
        File::from(run).take(most).read_to_string(&mut text).expect("read");
        text
    }

    #[test]
    fn each_run_reads_all_of_a_pipe() {
        let (from, mut to) = pipe().expect("a pipe");
        let input = Input::of(File::from(OwnedFd::from(from))).expect("an input");
        let text = "0123456789\n".repeat(30_000);
        let expected = text.clone();
        let writer = spawn(move || to.write_all(text.as_bytes()));
        assert_eq!(read(&input, u64::MAX), expected);
        writer.join().expect("a thread").expect("written");
        // One that ends early takes nothing from those after it.
        assert_eq!(read(&input, 5), "01234");
        assert_eq!(read(&input, u64::MAX), expected);
    }

    #[test]
    fn further_runs_read_a_file_from_where_the_first_began() {
        let mut file = unnamed().expect("a file");
        file.write_all(b"head and tail").expect("written");
        file.seek(SeekFrom::Start(5)).expect("moved");
        let mut first = file.try_clone().expect("the same");
        let input = Input::of(file).expect("an input");
        assert!(input.next().expect("an input").is_none(), "the first reads through its own");
        io::copy(&mut first, &mut io::sink()).expect("read");
        for _ in 0..2 {
            assert_eq!(read(&input, u64::MAX), "and tail");
        }
        assert_eq!(first.stream_position().expect("a file"), 13, "where the first left it");
    }

    #[test]
    fn a_device_is_read_on() {
        assert!(Input::of(File::open("/dev/null").expect("a device")).is_none());
    }
}
