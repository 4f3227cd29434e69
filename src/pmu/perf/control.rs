//! The control pipe: commands in perf's words that switch counting on and off.

use crate::Control;
use crate::kernel::Order;
use nix::fcntl::OFlag;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use tma::error::{Error, Result};

/// Longest command; what is longer is none.
const LONGEST: usize = 256;

/// Open pipes.
pub(super) struct Pipe {
    commands: File,
    ack: Option<File>,
    /// Text read that is not yet a whole line.
    text: Vec<u8>,
}

impl Pipe {
    /// Opens them for reading and writing, as perf does: opening does not block, and a writer that goes away ends
    /// nothing.
    pub(super) fn open(control: &Control) -> Result<Self> {
        let ack = control.ack.as_deref().map(pipe).transpose()?;
        Ok(Self { commands: pipe(&control.commands)?, ack, text: Vec::new() })
    }

    /// The next command, if there is one.
    pub(super) fn next(&mut self) -> Option<Order> {
        loop {
            let is_end = |byte: &u8| matches!(byte, b'\n' | 0);
            if let Some(end) = self.text.iter().position(is_end) {
                let line: Vec<u8> = self.text.drain(..=end).collect();
                match line[..end].trim_ascii() {
                    b"" => continue,
                    b"enable" => return Some(Order::Enable),
                    b"disable" => return Some(Order::Disable),
                    b"ping" => return Some(Order::Ping),
                    _ => return Some(Order::Unknown),
                }
            }
            if self.text.len() > LONGEST {
                self.text.clear();
                return Some(Order::Unknown);
            }
            let mut bytes = [0; LONGEST];
            match self.commands.read(&mut bytes) {
                Ok(n @ 1..) => self.text.extend(&bytes[..n]),
                _ => return None,
            }
        }
    }

    /// Writes `ack`. Nobody may read it: then it is lost when the pipe is full.
    pub(super) fn acknowledge(&mut self) {
        let _ = self.ack.as_mut().map(|ack| ack.write_all(b"ack\n"));
    }
}

impl AsFd for Pipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.commands.as_fd()
    }
}

fn pipe(path: &Path) -> Result<File> {
    let failed = || Error::failed(format!("cannot open the control pipe {}", path.display()));
    let make = || format!("mkfifo {}", path.display());
    let flags = (OFlag::O_NONBLOCK | OFlag::O_CLOEXEC).bits();
    let opened = File::options().read(true).write(true).custom_flags(flags).open(path);
    let file = opened.map_err(|e| failed().because(e).hint(make()))?;
    match file.metadata() {
        Ok(found) if found.file_type().is_fifo() => Ok(file),
        _ => Err(failed()
            .because("it is no named pipe")
            .hint("`mkfifo PATH` makes one; give a path where nothing is yet")),
    }
}
