//! Output of sampling: records while it runs, and a summary, with statistics of raw records (samples are not
//! decoded) and the files that processes have mapped.
//!
//! Layouts are those of `enum perf_event_type` in linux/perf_event.h.

use super::plan::SampledEvent;
use crate::records::format::misc;
use crate::records::kind::{self, LOST, LOST_SAMPLES, MMAP, SAMPLE, THROTTLE};
use crate::records::raw::{Header, headers};
use nix::sys::stat::{major, minor};
use std::collections::HashMap;
use std::fs::{File, metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(super) use kind::{COMM, MMAP2};
pub(super) use misc::MMAP_BUILD_ID as MISC_BUILD_ID;

/// An open event.
#[derive(Debug, Clone, PartialEq)]
pub struct Attached {
    /// The event.
    pub event: SampledEvent,
    /// Its ids in records, one per task and CPU.
    pub ids: Vec<u64>,
    /// Ids of each event counted in its group.
    pub counted: Vec<Vec<u64>>,
}

/// Complete records of one ring buffer, in order of writing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// CPU of the ring buffer; `None` for synthesized records.
    pub cpu: Option<u32>,
    /// Number of records.
    pub records: u32,
    /// Number of samples among them.
    pub samples: u32,
    /// Their bytes, headers included.
    pub bytes: Vec<u8>,
}

/// Output of sampling, in this order: events once, then batches.
#[derive(Debug)]
pub enum Output {
    /// The open events, and the ids of the events that track mappings, names and starts.
    Events(Vec<Attached>, Vec<u64>),
    /// Records.
    Records(Batch),
}

/// Receives the output of sampling.
pub type Sink = Box<dyn FnMut(Output) + Send>;

/// A file that was mapped executable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedFile {
    /// Its path as the process saw it.
    pub path: String,
    /// Its build-id, from its record or the file.
    pub build_id: Vec<u8>,
}

/// A file that was mapped executable and that its path does not lead to from here: it was replaced, or is of another
/// mount namespace.
#[derive(Debug, Clone)]
pub struct ElsewhereFile {
    /// Its build-id.
    pub build_id: Vec<u8>,
    /// The file.
    pub file: Arc<File>,
}

impl PartialEq for ElsewhereFile {
    fn eq(&self, other: &Self) -> bool {
        self.build_id == other.build_id
    }
}

/// Summary of a recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// Samples.
    pub samples: u64,
    /// Samples and other records that the kernel had no room for.
    pub lost: u64,
    /// Times the kernel throttled an event.
    pub throttled: u64,
    /// Bytes of records.
    pub bytes: u64,
    /// CPU time of this process during it: all threads, user and system.
    pub cpu: Duration,
    /// Wall time.
    pub wall: Duration,
    /// Files with code that were mapped.
    pub files: Vec<MappedFile>,
    /// Files in `files` that their paths do not lead to.
    pub elsewhere: Vec<ElsewhereFile>,
    /// Notes that a report must show.
    pub notes: Vec<String>,
}

impl Summary {
    /// CPU time of this process as a share of one CPU; `None` if no time passed.
    pub fn overhead(&self) -> Option<f64> {
        let wall = self.wall.as_secs_f64();
        (wall > 0.0).then(|| self.cpu.as_secs_f64() / wall)
    }
}

/// Statistics of the records of a recording.
#[derive(Debug, Default)]
pub(super) struct RecordStatistics {
    pub samples: u64,
    pub lost: u64,
    pub throttled: u64,
    pub bytes: u64,
    /// Files mapped executable, with the build-id if the record has it, each by one of its mappings.
    pub files: HashMap<(String, Option<Vec<u8>>), Mapped>,
}

impl RecordStatistics {
    /// Adds records; how many there are, and how many of them are samples.
    pub fn add(&mut self, bytes: &[u8]) -> (u32, u32) {
        let (mut records, mut samples) = (0, 0);
        for header in headers(bytes).map_while(Result::ok) {
            records += 1;
            match header.kind {
                SAMPLE => samples += 1,
                // id, lost
                LOST => self.lost += word(header.body, 8),
                LOST_SAMPLES => self.lost += word(header.body, 0),
                THROTTLE => self.throttled += 1,
                MMAP | MMAP2 if header.misc & misc::MMAP_DATA == 0 => self.map(&header),
                _ => {}
            }
        }
        self.samples += u64::from(samples);
        self.bytes += bytes.len() as u64;
        (records, samples)
    }

    /// pid, tid, addr, len, pgoff, and with MMAP2 device and inode (or build-id), prot, flags;
    /// then the path, ended by a zero.
    fn map(&mut self, header: &Header<'_>) {
        const PROT_EXEC: u64 = 4;
        let is_second = header.kind == MMAP2;
        let name = header.body.get(if is_second { 64 } else { 32 }..).unwrap_or_default();
        let name = name.split(|b| *b == 0).next().unwrap_or_default();
        if is_second && word(header.body, 56) & PROT_EXEC == 0 {
            return;
        }
        let build_id = (is_second && header.misc & MISC_BUILD_ID != 0).then(|| {
            let length = header.body.get(32).map_or(0, |n| usize::from(*n).min(20));
            header.body.get(36..36 + length).unwrap_or_default().to_vec()
        });
        let build_id = build_id.filter(|id| !id.is_empty());
        let Ok(name) = std::str::from_utf8(name) else { return };
        let half = |at: usize| word(header.body, at) & 0xffff_ffff;
        // Where there is a build-id, device and inode are not recorded.
        let is_known = is_second && build_id.is_none() && word(header.body, 40) != 0;
        let start = word(header.body, 8);
        let mapped = Mapped {
            pid: half(0) as u32,
            start,
            end: start.saturating_add(word(header.body, 16)),
            path: name.to_owned(),
            device: is_known.then(|| (half(32), half(36))),
            inode: is_known.then(|| word(header.body, 40)),
        };
        self.files.insert((name.to_owned(), build_id), mapped);
    }
}

/// The 64-bit word at `at`; 0 if the body is too short.
fn word(body: &[u8], at: usize) -> u64 {
    let bytes = body.get(at..at + 8).and_then(|b| b.try_into().ok());
    bytes.map_or(0, u64::from_le_bytes)
}

/// Appended by the kernel to the path of a deleted file.
const DELETED: &str = " (deleted)";

/// A mapping of a file, as the kernel names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mapped {
    pub pid: u32,
    pub start: u64,
    pub end: u64,
    pub path: String,
    /// Device and inode, where they are known.
    pub device: Option<(u64, u64)>,
    pub inode: Option<u64>,
}

impl Mapped {
    /// Whether it is of a file that has a path.
    pub fn is_of_file(&self) -> bool {
        self.path.starts_with('/') && !self.path.starts_with("//") && self.inode != Some(0)
    }

    /// Its file; `None` if it cannot be reached, because the process has ended or is another user's.
    pub fn open(&self) -> Option<File> {
        let path = self.path.strip_suffix(DELETED).unwrap_or(&self.path);
        let of_process = |name: &str| PathBuf::from(format!("/proc/{}/{name}", self.pid));
        let of_process = [
            of_process(&format!("root{path}")),
            of_process("exe"),
            // Only with CAP_CHECKPOINT_RESTORE.
            of_process(&format!("map_files/{:x}-{:x}", self.start, self.end)),
        ];
        let here = PathBuf::from(path);
        let all = of_process.iter().chain([&here]).filter_map(|place| tma::files::open(place).ok());
        let files: Vec<File> = all.collect();
        // Overlay and btrfs report another device for a mapping than for the file.
        let exact = files.iter().position(|file| self.is(file, true));
        let found = exact.or_else(|| files.iter().position(|file| self.is(file, false)))?;
        files.into_iter().nth(found)
    }

    fn is(&self, file: &File, with_device: bool) -> bool {
        let Ok(found) = file.metadata() else { return false };
        let device = (major(found.dev()), minor(found.dev()));
        self.inode.is_none_or(|inode| inode == found.ino())
            && (!with_device || self.device.is_none_or(|own| own == device))
    }
}

/// Whether `path` leads to this file from here.
pub(super) fn is_here(path: &str, file: &File) -> bool {
    let place = |of: std::io::Result<std::fs::Metadata>| of.ok().map(|m| (m.dev(), m.ino()));
    let here = place(metadata(Path::new(path)));
    here.is_some() && here == place(file.metadata())
}

/// Most of them: each is an open file.
const MOST: usize = 64;

/// Adds a file that was mapped at `path`, unless the path leads to it, or there are enough.
pub(super) fn add(all: &mut Vec<ElsewhereFile>, path: &str, file: File, build_id: &[u8]) {
    let is_new = all.len() < MOST && all.iter().all(|known| known.build_id != build_id);
    if is_new && !is_here(path, &file) {
        all.push(ElsewhereFile { build_id: build_id.to_vec(), file: Arc::new(file) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::raw::record;
    use std::io::Read as _;

    #[test]
    fn samples_losses_and_executable_files_are_found() {
        let mut map = vec![0; 64];
        map[32] = 4;
        map[36..40].copy_from_slice(&[1, 2, 3, 4]);
        map[56] = 5;
        map.extend(b"/bin/x\0\0");
        let mut data = map.clone();
        data[56] = 3;
        data[69] = b'y';
        let lost = [[0; 8], 7u64.to_le_bytes()].concat();
        let all = [
            record(9, 2, &[0; 16]),
            record(2, 0, &lost),
            record(10, 1 << 14, &map),
            record(10, 1 << 14, &data),
        ];
        let mut statistics = RecordStatistics::default();
        assert_eq!(statistics.add(&all.concat()), (4, 1));
        assert_eq!((statistics.samples, statistics.lost), (1, 7));
        let files: Vec<_> = statistics.files.into_keys().collect();
        assert_eq!(files, [("/bin/x".into(), Some(vec![1, 2, 3, 4]))]);
    }

    #[test]
    fn a_file_is_known_by_its_inode_not_by_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        std::fs::write(&path, "old").unwrap();
        let old = metadata(&path).unwrap();
        let mapped = Mapped {
            pid: std::process::id(),
            start: 0,
            end: 0,
            path: path.display().to_string(),
            device: Some((major(old.dev()), minor(old.dev()))),
            inode: Some(old.ino()),
        };
        let mut content = String::new();
        let file = mapped.open().unwrap();
        (&file).read_to_string(&mut content).unwrap();
        assert!(content == "old" && is_here(&mapped.path, &file));
        // Replaced: another file has its path now, which is not taken for it.
        std::fs::write(folder.path().join("next"), "new").unwrap();
        std::fs::rename(folder.path().join("next"), &path).unwrap();
        assert!(mapped.open().is_none() && !is_here(&mapped.path, &file));
        let deleted = Mapped { path: mapped.path.clone() + DELETED, ..mapped };
        assert!(deleted.open().is_none());
    }
}
