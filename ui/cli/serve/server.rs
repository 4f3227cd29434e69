//! Connections, all in one thread: as many as [`MOST`], each with a short time for its request and its answer, after
//! which it closes. Nothing that a client does takes more than a fixed amount of memory, or holds up others.

use super::http::{Asked, LONGEST_HEAD, Request, Status, refusal, request};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::{Duration, Instant};
use tma::{Error, Result};

/// Most connections at a time; a further one takes the place of the oldest that has not asked for anything yet.
const MOST: usize = 64;
/// Time for a request and its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pause where the system has no room for a connection.
const PAUSE: Duration = Duration::from_millis(100);
/// Most bytes taken of what follows a head, so that closing does not reset the answer.
const MOST_IGNORED: usize = 2 << 20;

/// Serves `pages` until `ended` becomes readable.
///
/// # Errors
/// The socket fails.
pub fn serve(
    listener: &TcpListener,
    ended: BorrowedFd<'_>,
    pages: &dyn Fn(Asked) -> Vec<u8>,
) -> Result<()> {
    listener.set_nonblocking(true).map_err(failed)?;
    let mut all: Vec<Connection> = Vec::new();
    loop {
        let ready = wait(listener, ended, &all).map_err(|e| failed(e.into()))?;
        if ready.ended {
            return Ok(());
        }
        for at in ready.connections {
            all[at].go(pages);
        }
        let now = Instant::now();
        all.iter_mut().for_each(|connection| connection.hurry(now));
        all.retain(|connection| connection.state != State::Closed);
        if ready.new {
            accept(listener, &mut all, now);
        }
    }
}

fn failed(cause: std::io::Error) -> Error {
    Error::failed("cannot serve metrics").because(cause)
}

/// What can go on.
struct Ready {
    ended: bool,
    new: bool,
    connections: Vec<usize>,
}

/// Waits for any of them, or for the end of a connection's time.
fn wait(listener: &TcpListener, ended: BorrowedFd<'_>, all: &[Connection]) -> nix::Result<Ready> {
    let mut fds = vec![
        PollFd::new(ended, PollFlags::POLLIN),
        PollFd::new(listener.as_fd(), PollFlags::POLLIN),
    ];
    fds.extend(all.iter().map(|connection| {
        let flags = match connection.state {
            State::Writing => PollFlags::POLLOUT,
            _ => PollFlags::POLLIN,
        };
        PollFd::new(connection.stream.as_fd(), flags)
    }));
    let now = Instant::now();
    let left = all.iter().map(|connection| connection.due.saturating_duration_since(now)).min();
    let timeout = left.map_or(PollTimeout::NONE, |left| {
        // A millisecond more: not to look before it is over.
        PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::ZERO)
    });
    match poll(&mut fds, timeout) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(errno) => return Err(errno),
    }
    let is_ready = |fd: &PollFd| fd.any().unwrap_or(false);
    let connections = fds[2..].iter().enumerate().filter(|(_, fd)| is_ready(fd));
    let connections = connections.map(|(at, _)| at).collect();
    Ok(Ready { ended: is_ready(&fds[0]), new: is_ready(&fds[1]), connections })
}

/// Takes the connections that wait.
fn accept(listener: &TcpListener, all: &mut Vec<Connection>, now: Instant) {
    // As many as there may be, then those that are here go on.
    for _ in 0..MOST {
        match listener.accept() {
            Ok((stream, _)) => {
                if stream.set_nonblocking(true).is_err() {
                    continue;
                }
                if all.len() >= MOST {
                    let oldest = all.iter().position(|one| one.state == State::Reading);
                    all.remove(oldest.unwrap_or(0));
                }
                all.push(Connection::new(stream, now));
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock => return,
                ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
                // No room for a file: it would be ready again at once.
                _ => return std::thread::sleep(PAUSE),
            },
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its head has not ended.
    Reading,
    /// Its answer is being sent.
    Writing,
    /// Its answer was sent; what still comes is ignored until the client closes.
    Ending,
    Closed,
}

struct Connection {
    stream: TcpStream,
    state: State,
    head: Vec<u8>,
    answer: Vec<u8>,
    sent: usize,
    ignored: usize,
    due: Instant,
}

impl Connection {
    fn new(stream: TcpStream, now: Instant) -> Self {
        let (head, answer) = (Vec::new(), Vec::new());
        let (state, due) = (State::Reading, now + PATIENCE);
        Self { stream, state, head, answer, sent: 0, ignored: 0, due }
    }

    /// Reads or writes what is possible now.
    fn go(&mut self, pages: &dyn Fn(Asked) -> Vec<u8>) {
        match self.state {
            State::Reading => self.read(pages),
            State::Writing => self.write(),
            State::Ending => self.ignore(),
            State::Closed => {}
        }
    }

    fn read(&mut self, pages: &dyn Fn(Asked) -> Vec<u8>) {
        let mut bytes = [0; 2048];
        let room = (LONGEST_HEAD - self.head.len()).min(bytes.len());
        match self.stream.read(&mut bytes[..room]) {
            Ok(0) => return self.state = State::Closed,
            Ok(n) => self.head.extend_from_slice(&bytes[..n]),
            Err(error) => return self.failed(error.kind()),
        }
        match request(&self.head) {
            Request::Partial => {}
            Request::Asked(asked) => self.send(pages(asked)),
            Request::Refused(status) => self.send(refusal(status)),
        }
    }

    fn send(&mut self, answer: Vec<u8>) {
        (self.answer, self.state) = (answer, State::Writing);
        self.write();
    }

    fn write(&mut self) {
        match self.stream.write(&self.answer[self.sent..]) {
            Ok(n) => self.sent += n,
            Err(error) => return self.failed(error.kind()),
        }
        if self.sent == self.answer.len() {
            self.answer = Vec::new();
            let closed = self.stream.shutdown(Shutdown::Write);
            self.state = if closed.is_ok() { State::Ending } else { State::Closed };
        }
    }

    fn ignore(&mut self) {
        let mut bytes = [0; 4096];
        match self.stream.read(&mut bytes) {
            Ok(0) => self.state = State::Closed,
            Ok(n) => {
                self.ignored += n;
                if self.ignored > MOST_IGNORED {
                    self.state = State::Closed;
                }
            }
            Err(error) => self.failed(error.kind()),
        }
    }

    fn failed(&mut self, kind: ErrorKind) {
        if !matches!(kind, ErrorKind::WouldBlock | ErrorKind::Interrupted) {
            self.state = State::Closed;
        }
    }

    /// Closes it when its time is over; a request that has begun is told so.
    fn hurry(&mut self, now: Instant) {
        if now < self.due {
            return;
        }
        if self.state == State::Reading && !self.head.is_empty() {
            let _ = self.stream.write(&refusal(Status::Timeout));
        }
        self.state = State::Closed;
    }
}
