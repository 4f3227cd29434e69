//! Failed tries to stop a process, and what the process notices of them.

use super::attached::{Live, counted_or_not};
use crate::support::files::{Folder, text};
use crate::support::quiet::busy;
use crate::support::trial::{Trial, assert_holds, claim};
use crate::support::wait::until;
use std::path::Path;
use std::time::Duration;

/// A child that is no thread has the same memory: nothing is counted. Another thread waits for nothing, 40 ms
/// each time, and counts in the file FIRED how often that time was over.
const WAITING: &str = r#"
#include <fcntl.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/mman.h>
static char stack[1 << 16];
static int child(void *none) { for (;;) pause(); }
static void *waits(void *none) {
    int file = open(FIRED, O_RDWR | O_CREAT, 0600), set = epoll_create1(0);
    struct epoll_event event;
    unsigned short fired = 0;
    while (!over) {
        // The signal that ends the program may interrupt this thread.
        if (epoll_wait(set, &event, 1, 40) && !over) wrong++;
        fired++;
        pwrite(file, &fired, 2, 0);
    }
    return 0;
}
int main(void) {
    pthread_t thread;
    signal(SIGTERM, end);
    pthread_create(&thread, 0, waits, 0);
    pid_t other = clone(child, stack + sizeof stack, CLONE_VM | SIGCHLD, 0);
    unsigned long first = both(3);
    while (!over) check(3, first);
    kill(other, SIGKILL);
    return done();
}
"#;

fn fired(file: &Path) -> u16 {
    let bytes = std::fs::read(file).unwrap_or_default();
    bytes.first_chunk().map_or(0, |bytes| u16::from_le_bytes(*bytes))
}

/// The timeout of `epoll_wait` begins anew with each stop (Linux, `do_epoll_wait`: -EINTR).
#[test]
fn timeouts_that_begin_anew_end_nevertheless() {
    let _busy = busy();
    let folder = Folder::new();
    let file = folder.path().join("fired");
    let option = format!("-DFIRED=\"{}\"", text(&file));
    let Some(live) = Live::start(&folder, WAITING, &[&option]) else { return };
    until(|| fired(&file) > 0, || "it does not wait".to_owned());
    let wanted = live.wanted(["part"]);
    let measure = || {
        let before = fired(&file);
        let found = counted_or_not(live.pid(), &wanted, Duration::from_millis(5));
        let times = u64::from(fired(&file) - before);
        let Err(why) = found else { panic!("it was counted") };
        if !why.contains("has the same memory") {
            return Trial::Unsettled(why);
        }
        // 50 in the two seconds of the tries without any stop, and some while its code is analysed.
        claim(times >= 12, || format!("{times} timeouts")).into()
    };
    assert_holds("timeouts end", measure);
    live.end();
}
