//! Inputs that can be read only once or are compressed: standard input, pipes from the shell (`<(…)`), `.gz`, `.zst`
//! and `.xz` files. Each is unpacked and saved to an unnamed file, so that every reader sees a regular file under the
//! name that the user gave.

use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Error, ErrorKind, Read, Seek as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Most bytes that a compressed file may unpack to: a few kilobytes can hold petabytes.
const MOST_UNPACKED: u64 = 1 << 30;
/// Most memory for unpacking xz, in KiB: its highest level takes 64 MiB.
const MOST_KIB: u32 = 80 << 10;
/// Largest window of zstd, as its own default (`ZSTD_WINDOWLOG_LIMIT_DEFAULT`).
const LARGEST_WINDOW: u64 = 1 << 27;

/// Saved inputs, by the name that the user gave.
static KEPT: Mutex<Vec<(PathBuf, File)>> = Mutex::new(Vec::new());

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// gzip.
    Gzip,
    /// zstd.
    Zstd,
    /// xz.
    Xz,
}

impl Packing {
    /// The packing of a file that begins with these bytes; `None` if it is not compressed.
    pub fn of(start: &[u8]) -> Option<Self> {
        // A frame to be skipped, with which pzstd begins.
        if let [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] = start {
            return Some(Self::Zstd);
        }
        let known: [(&[u8], Self); 3] = [
            (b"\x1f\x8b", Self::Gzip),
            (b"\x28\xb5\x2f\xfd", Self::Zstd),
            (b"\xfd7zXZ\0", Self::Xz),
        ];
        known.into_iter().find_map(|(magic, packing)| start.starts_with(magic).then_some(packing))
    }

    /// The tool's name, and the command that unpacks a file.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Gzip => ("gzip", "gunzip -k"),
            Self::Zstd => ("zstd", "unzstd"),
            Self::Xz => ("xz", "unxz -k"),
        }
    }

    fn unpacked<'a>(self, input: impl Read + 'a) -> Box<dyn Read + 'a> {
        match self {
            Self::Gzip => Box::new(MultiGzDecoder::new(input)),
            Self::Xz => Box::new(XzReader::new_mem_limit(input, true, MOST_KIB)),
            Self::Zstd => Box::new(Frames::new(input)),
        }
    }
}

/// Frames of zstd, one after another: pzstd writes several, and so do files that were put together.
struct Frames<R> {
    input: BufReader<R>,
    decoder: FrameDecoder,
    is_in_frame: bool,
}

impl<R: Read> Frames<R> {
    fn new(input: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(LARGEST_WINDOW);
        Self { input: BufReader::new(input), decoder, is_in_frame: false }
    }

    /// Begins the next frame, or skips one without data; `false` at the end of the input.
    fn next(&mut self) -> io::Result<bool> {
        if self.input.fill_buf()?.is_empty() {
            return Ok(false);
        }
        match self.decoder.init(&mut self.input) {
            Ok(()) => self.is_in_frame = true,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                let mut skipped = (&mut self.input).take(length.into());
                if io::copy(&mut skipped, &mut io::sink())? < length.into() {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
            }
            Err(e) => return Err(invalid(&e)),
        }
        Ok(true)
    }

    /// Ends a frame of which all was read.
    fn end(&mut self) -> io::Result<()> {
        self.is_in_frame = false;
        match self.decoder.get_checksum_from_data() {
            Some(sum) if self.decoder.get_calculated_checksum() != Some(sum) => {
                Err(Error::new(ErrorKind::InvalidData, "its checksum does not match"))
            }
            _ => Ok(()),
        }
    }
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.is_in_frame {
                if !self.next()? {
                    return Ok(0);
                }
                continue;
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.input, one).map_err(|e| invalid(&e))?;
            }
            let n = self.decoder.read(buffer)?;
            if n > 0 {
                return Ok(n);
            }
            self.end()?;
        }
    }
}

fn invalid(error: &FrameDecoderError) -> Error {
    Error::new(ErrorKind::InvalidData, error.to_string())
}

/// Opens a file that a user named, from its start and unpacked; `-` is standard input.
///
/// # Errors
/// It cannot be read or unpacked, or is no regular file and no pipe of the user's shell.
pub fn open(path: &Path) -> io::Result<File> {
    if let Some(file) = kept(path) {
        return file;
    }
    if path == Path::new("-") {
        return keep(path, io::stdin().lock());
    }
    if let Some(pipe) = pipe(path)? {
        return keep(path, pipe);
    }
    let mut file = tma::files::open(path)?;
    let mut start = [0; 6];
    let n = fill(&mut file, &mut start)?;
    file.rewind()?;
    match Packing::of(&start[..n]) {
        None => Ok(file),
        Some(_) => keep(path, file),
    }
}

/// The saved input of this name, at its start.
pub fn kept(path: &Path) -> Option<io::Result<File>> {
    let all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let (_, file) = all.iter().find(|(name, _)| name == path)?;
    Some(reopened(file))
}

/// Opens the same file again, for an independent position.
fn reopened(file: &File) -> io::Result<File> {
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// A pipe that the user's shell opened. One with a name may have no writer, ever.
fn pipe(path: &Path) -> io::Result<Option<File>> {
    let is_pipe = tma::files::is_open_already(path)
        && fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo());
    is_pipe.then(|| File::open(path)).transpose()
}

/// Saves a whole input. Text has the usual length limit; a recording is limited by the disk.
fn keep(path: &Path, mut input: impl Read) -> io::Result<File> {
    let mut start = [0; 64];
    let n = fill(&mut input, &mut start)?;
    let start = &start[..n];
    let packing = Packing::of(start);
    let all = start.chain(input);
    let most = match packing {
        Some(_) => MOST_UNPACKED,
        None if start.contains(&0) => u64::MAX - 1,
        None => tma::files::LONGEST_TEXT,
    };
    let mut file = unnamed(&std::env::temp_dir())?;
    let copied = match packing {
        None => io::copy(&mut all.take(most + 1), &mut file),
        Some(packing) => io::copy(&mut packing.unpacked(all).take(most + 1), &mut file)
            .map_err(|e| damaged(packing, &e)),
    }?;
    if copied > most {
        return Err(too_long(path, packing, most));
    }
    let again = reopened(&file)?;
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).push((path.to_owned(), file));
    Ok(again)
}

fn damaged(packing: Packing, error: &Error) -> Error {
    let (tool, _) = packing.names();
    Error::new(
        ErrorKind::InvalidData,
        format!("it is compressed with {tool} and does not unpack: {error}"),
    )
}

fn too_long(path: &Path, packing: Option<Packing>, most: u64) -> Error {
    let mib = most >> 20;
    let why = match packing {
        None => format!("it is longer than {mib} MiB: write it to a file"),
        Some(packing) => {
            let (_, command) = packing.names();
            let how = match tma::shell::file(path) {
                Some(file) => format!("`{command} {file}` unpacks it"),
                None => "write it to a file, unpacked".to_owned(),
            };
            format!("it unpacks to more than {mib} MiB: {how}")
        }
    };
    Error::new(ErrorKind::FileTooLarge, why)
}

/// Reads until the buffer is full or the input ends.
pub(crate) fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut n = 0;
    while n < buffer.len() {
        match input.read(&mut buffer[n..]) {
            Ok(0) => break,
            Ok(more) => n += more,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(n)
}

/// A file that is gone when it is closed, however this process ends: made in a folder of its own, and neither has a
/// name any more.
///
/// # Errors
/// It cannot be made in `folder`.
pub fn unnamed(folder: &Path) -> io::Result<File> {
    let folder = nix::unistd::mkdtemp(&folder.join("tdtool-XXXXXX"))?;
    let path = folder.join("kept");
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
    let _ = fs::remove_file(&path);
    let _ = fs::remove_dir(&folder);
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    /// `printf 'event,value\n' | xz`, `| gzip -n` and `| zstd`, by xz 5.4, gzip 1.12 and zstd 1.5.
    const XZ: &[u8] = include_bytes!("../../tests/fixtures/import/packed.csv.xz");
    const GZIP: &[u8] = include_bytes!("../../tests/fixtures/import/packed.csv.gz");
    const ZSTD: &[u8] = include_bytes!("../../tests/fixtures/import/packed.csv.zst");

    fn text(bytes: &[u8]) -> io::Result<String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        io::read_to_string(open(file.path())?)
    }

    #[test]
    fn a_compressed_file_is_read_as_what_is_in_it_and_as_often_as_needed() {
        for packed in [XZ, GZIP, ZSTD] {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(packed).unwrap();
            for _ in 0..2 {
                let text = io::read_to_string(open(file.path()).unwrap()).unwrap();
                assert_eq!(text, "event,value\n");
            }
        }
        assert_eq!(text(b"event,value\n").unwrap(), "event,value\n", "what is not is left alone");
        assert_eq!(text(b"").unwrap(), "");
    }

    #[test]
    fn a_damaged_one_is_an_error() {
        for packed in [XZ, GZIP, ZSTD] {
            let error = text(&packed[..packed.len() - 9]).unwrap_err();
            assert!(error.to_string().contains("does not unpack"), "{error}");
        }
    }

    #[test]
    fn all_frames_of_zstd_are_read() {
        let skipped =
            |length: u32| [&b"\x50\x2a\x4d\x18"[..], &length.to_le_bytes(), b"size"].concat();
        assert_eq!(text(&[ZSTD, ZSTD].concat()).unwrap(), "event,value\nevent,value\n");
        let as_pzstd = [&skipped(4), ZSTD, &skipped(4), ZSTD, &skipped(4)].concat();
        assert_eq!(text(&as_pzstd).unwrap(), "event,value\nevent,value\n");

        let mut other_sum = ZSTD.to_vec();
        *other_sum.last_mut().unwrap() ^= 1;
        for second in [&ZSTD[..ZSTD.len() - 9], &ZSTD[..2], b"\0\0\0\0", &other_sum, &skipped(5)] {
            let error = text(&[ZSTD, second].concat()).unwrap_err();
            assert!(error.to_string().contains("does not unpack"), "{error}");
        }
    }

    #[test]
    fn what_is_too_long_is_unpacked_by_a_command_that_a_shell_takes() {
        let error = |path| too_long(Path::new(path), Some(Packing::Gzip), 1 << 20).to_string();
        let expected = "it unpacks to more than 1 MiB: `gunzip -k 'a b.csv.gz'` unpacks it";
        assert_eq!(error("a b.csv.gz"), expected);
        assert!(error("-a.gz").contains("`gunzip -k ./-a.gz`"));
        for read_once in ["-", "/dev/fd/63"] {
            assert!(!error(read_once).contains("gunzip"), "{read_once}");
        }
    }

    #[test]
    fn an_unnamed_file_can_be_opened_and_has_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = unnamed(folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        fs::write(&path, "samples").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"samples");
    }
}
