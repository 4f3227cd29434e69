//! System calls that a program waits in while it is attached to: none of them is interrupted.

use super::attached::{Live, counted};
use crate::support::files::Folder;
use crate::support::quiet::busy;
use crate::support::wait::until;
use nix::sys::signal::Signal;
use std::io::{BufRead as _, BufReader, Write as _};
use std::time::Duration;

/// Threads that each wait in one system call for ever, or for minutes. A line of input has the names of
/// those printed that have returned EINTR since the last one.
const WAITING: &str = r#"
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
static struct timespec long_time = {600, 0};
static int pair(int option) {
    int ends[2];
    struct timeval time = {600, 0};
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    if (option) setsockopt(ends[0], SOL_SOCKET, option, &time, sizeof time);
    return ends[0];
}
static socklen_t length = sizeof(struct sockaddr_un);
/* A listening socket; its name is asked for once. */
static int listening(struct sockaddr_un *name) {
    int own = socket(AF_UNIX, SOCK_STREAM, 0);
    struct timeval time = {600, 0};
    struct sockaddr_un none = {.sun_family = AF_UNIX};
    setsockopt(own, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    bind(own, (void *)&none, sizeof(sa_family_t));
    listen(own, 0);
    if (name) getsockname(own, (void *)name, &length);
    return own;
}
static int epoll(void) { return epoll_create1(0); }
#define CALL(name, call, ...) static long name(void) { __VA_ARGS__; long got; while ((got = (call)) >= 0) sleep(1); return got; }
CALL(epoll_forever, epoll_wait(e, &v, 1, -1), int e = epoll(); struct epoll_event v)
CALL(epoll_timed, epoll_wait(e, &v, 1, 600000), int e = epoll(); struct epoll_event v)
CALL(epoll_masked, epoll_pwait(e, &v, 1, -1, &none), int e = epoll(); struct epoll_event v; sigset_t none; sigemptyset(&none); sigaddset(&none, SIGUSR1))
CALL(sem_forever, semop(s, &down, 1), int s = semget(IPC_PRIVATE, 1, 0600); struct sembuf down = {0, -1, 0})
CALL(sem_timed, semtimedop(s, &down, 1, &long_time), int s = semget(IPC_PRIVATE, 1, 0600); struct sembuf down = {0, -1, 0})
CALL(signal_forever, sigwaitinfo(&set, 0), sigset_t set; sigemptyset(&set); sigaddset(&set, SIGUSR2))
CALL(signal_timed, sigtimedwait(&set, 0, &long_time), sigset_t set; sigemptyset(&set); sigaddset(&set, SIGUSR2))
CALL(receive_timed, recv(s, &byte, 1, 0), int s = pair(SO_RCVTIMEO); char byte)
CALL(receive_read, read(s, &byte, 1), int s = pair(SO_RCVTIMEO); char byte)
CALL(receive_many, recvmmsg(s, &m, 1, 0, 0), int s = pair(SO_RCVTIMEO); char byte; struct iovec to = {&byte, 1}; struct mmsghdr m = {.msg_hdr = {.msg_iov = &to, .msg_iovlen = 1}})
CALL(send_timed, send(s, bytes, 1, 0), int s = pair(SO_SNDTIMEO); static char bytes[1 << 16]; while (send(s, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {})
CALL(accept_timed, accept(s, 0, 0), int s = listening(0))
CALL(connect_timed, connect(own, (void *)&to, length), struct sockaddr_un to; int s = listening(&to); struct timeval time = {600, 0}; int own = -1; for (int i = 0; i < 2; i++) { own = socket(AF_UNIX, SOCK_STREAM, 0); setsockopt(own, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time); if (!i) connect(own, (void *)&to, length); }; (void)s)
CALL(aio_events, syscall(SYS_io_getevents, c, 1L, 1L, &v, (void *)0), aio_context_t c = 0; struct io_event v; if (syscall(SYS_io_setup, 8, &c)) for (;;) pause())
CALL(uring, syscall(SYS_io_uring_enter, u, 0, 1, IORING_ENTER_GETEVENTS, (void *)0, 0), struct io_uring_params how; memset(&how, 0, sizeof how); int u = syscall(SYS_io_uring_setup, 8, &how); if (u < 0) for (;;) pause())
CALL(poll_timed, poll(0, 0, 600000), int none = 0; (void)none)
CALL(select_timed, select(0, 0, 0, 0, &time), struct timeval time = {600, 0})
CALL(sleep_timed, nanosleep(&long_time, 0), int none = 0; (void)none)
CALL(futex_forever, syscall(SYS_futex, &word, FUTEX_WAIT, 0, (void *)0, (void *)0, 0), static int word)
CALL(futex_timed, syscall(SYS_futex, &word, FUTEX_WAIT, 0, &long_time, (void *)0, 0), static int word)
CALL(pipe_read, read(ends[0], &byte, 1), int ends[2]; char byte; if (pipe(ends)) exit(9))
CALL(event_read, read(e, &n, 8), int e = eventfd(0, 0); uint64_t n)
CALL(watch_read, read(i, bytes, sizeof bytes), int i = inotify_init(); char bytes[512])
CALL(message, msgrcv(q, &m, 8, 0, 0), int q = msgget(IPC_PRIVATE, 0600); struct { long type; char text[8]; } m)
CALL(paused, pause(), int none = 0; (void)none)
CALL(receive, recv(s, &byte, 1, 0), int s = pair(0); char byte)
static struct { const char *name; long (*wait)(void); volatile long interrupted; volatile int other; } calls[] = {
#define ROW(name) {#name, name}
    ROW(epoll_forever), ROW(epoll_timed), ROW(epoll_masked), ROW(sem_forever), ROW(sem_timed), ROW(signal_forever), ROW(signal_timed),
    ROW(receive_timed), ROW(receive_read), ROW(receive_many), ROW(send_timed), ROW(accept_timed), ROW(connect_timed), ROW(aio_events),
    ROW(uring), ROW(poll_timed), ROW(select_timed), ROW(sleep_timed), ROW(futex_forever), ROW(futex_timed), ROW(pipe_read),
    ROW(event_read), ROW(watch_read), ROW(message), ROW(paused), ROW(receive),
};
enum { ALL = sizeof calls / sizeof *calls };
static void *waits(void *number) {
    long n = (long)number;
    while (calls[n].wait() < 0 && errno == EINTR) __atomic_add_fetch(&calls[n].interrupted, 1, __ATOMIC_RELAXED);
    calls[n].other = errno;
    return 0;
}
static void *computes(void *none) {
    unsigned long first = both(3);
    while (!over) check(3, first);
    return 0;
}
int main(void) {
    pthread_t threads[ALL], computing;
    sigset_t set;
    char line[8];
    setvbuf(stdout, 0, _IOLBF, 0);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, 0);
    for (long i = 0; i < ALL; i++) pthread_create(&threads[i], 0, waits, (void *)i);
    pthread_create(&computing, 0, computes, 0);
    signal(SIGTERM, end);
    while (fgets(line, sizeof line, stdin)) {
        for (int i = 0; i < ALL; i++) {
            /* In one step: what comes between a look and a reset would be lost. */
            if (__atomic_exchange_n(&calls[i].interrupted, 0, __ATOMIC_RELAXED)) printf("%s ", calls[i].name);
            if (calls[i].other) printf("%s:%d ", calls[i].name, calls[i].other);
        }
        printf("\n");
    }
    over = 1;
    pthread_join(computing, 0);
    exit(done());
}
"#;

#[test]
fn system_calls_are_restarted() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(mut live) = Live::start(&folder, WAITING, &["-w"]) else { return };
    let pid = live.pid();
    let running = live.running.as_mut().unwrap();
    let (mut input, mut output) =
        (running.stdin.take().unwrap(), BufReader::new(running.stdout.take().unwrap()));
    let mut interrupted = || {
        input.write_all(b"\n").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    };
    // All wait but the first, which may just begin to wait for input, and the one that computes.
    let waiting = || {
        let all = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
        let all = all.filter(|entry| entry.file_name() != *pid.to_string());
        let states = all.map(|entry| super::attached::state_of(&entry.path()));
        states.filter(|state| *state == 'S').count() >= 26
    };
    until(waiting, || "its threads do not wait".to_owned());
    assert_eq!(interrupted(), "");
    let wanted = live.wanted(["part", "tight"]);
    // What does not stop soon at the end of a window is traced until the thread that measures ends.
    let measured = || counted(pid, &wanted, Duration::from_millis(20));
    let window = || std::thread::scope(|scope| scope.spawn(measured).join().unwrap());
    // Five windows, and more until the program got processor time in one: others may take it all.
    let (mut windows, mut executed) = (0, 0);
    while windows < 5 || (executed == 0 && windows < 500) {
        let Some(counts) = window() else { return };
        executed += counts.functions[0].as_ref().unwrap().blocks[0].count.clone().unwrap();
        windows += 1;
        assert_eq!(interrupted(), "");
    }
    assert!(executed > 0, "nothing was executed in {windows} windows");
    // What a stop by a signal does (signal(7)): the program would have told.
    // A thread that has not come back to its call after the last window would be interrupted in nothing.
    until(waiting, || "its threads do not wait again".to_owned());
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
    // All of its threads: one that has not stopped before SIGCONT comes is interrupted by nothing.
    let stopped = || {
        let mut all = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
        all.all(|entry| matches!(super::attached::state_of(&entry.path()), 'T' | 'X'))
    };
    until(stopped, || "it goes on".to_owned());
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGCONT).unwrap();
    // Each thread notes it when it runs next.
    let found = std::cell::RefCell::new(String::new());
    let all_noted = || {
        let mut found = found.borrow_mut();
        *found += &interrupted();
        *found += " ";
        let names = ["epoll_forever", "sem_timed", "signal_timed", "receive_timed"];
        names.iter().all(|name| found.contains(name))
    };
    until(all_noted, || format!("the stop has only interrupted {}", found.borrow()));
    let found = found.into_inner();
    eprintln!("interrupted by a stop: {found}");
    drop(input);
    let status = live.running.as_mut().unwrap().wait().unwrap();
    assert_eq!(status.code(), Some(4));
}
