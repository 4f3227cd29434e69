//! Ends measurements from other threads.

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, ppoll};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tma::error::{Error, Result};

/// Ends a measurement, and all that begin after it or only this one. Several measurements of a process may run at once
/// where each has its own ([`super::Live::until`]), while another thread catches the signals.
#[derive(Debug)]
pub struct Ending {
    reader: OwnedFd,
    writer: OwnedFd,
    for_ever: AtomicBool,
}

impl Ending {
    /// Nothing ends yet.
    ///
    /// # Errors
    /// There is no pipe left.
    pub fn new() -> Result<Self> {
        let made = nix::unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK);
        let (reader, writer) =
            made.map_err(|e| Error::failed("cannot make a pipe").because(e.desc()))?;
        Ok(Self { reader, writer, for_ever: AtomicBool::new(false) })
    }

    /// Ends the measurement, and every later one when it begins.
    pub fn end(&self) {
        self.for_ever.store(true, Ordering::SeqCst);
        self.end_this();
    }

    /// Ends this measurement; the next one goes on.
    pub fn end_this(&self) {
        // A full pipe ends it, too.
        let _ = nix::unistd::write(&self.writer, &[0]);
    }

    /// Whether later ones are to end, too.
    pub fn is_for_ever(&self) -> bool {
        self.for_ever.load(Ordering::SeqCst)
    }

    /// Before the next measurement: forgets that only the last one was to end.
    pub fn begin(&self) {
        let mut bytes = [0; 64];
        while matches!(nix::unistd::read(&self.reader, &mut bytes), Ok(1..)) {}
        if self.is_for_ever() {
            self.end_this();
        }
    }

    /// Waits for the end for at most this time; whether it has come.
    pub fn wait(&self, longest: Duration) -> bool {
        let mut fds = [PollFd::new(self.as_fd(), PollFlags::POLLIN)];
        ppoll(&mut fds, Some(longest.into()), None) == Ok(1)
    }
}

impl AsFd for Ending {
    /// Becomes readable when the measurement is to end.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_measurement_ends_or_all_do() {
        let (ending, soon) = (Ending::new().expect("a pipe"), Duration::from_millis(1));
        assert!(!ending.wait(soon));
        ending.end_this();
        assert!(ending.wait(soon) && !ending.is_for_ever());
        ending.begin();
        assert!(!ending.wait(soon));
        ending.end();
        ending.begin();
        assert!(ending.wait(soon) && ending.is_for_ever());
    }
}
