//! Regions of a process that runs already.

use super::{marked, permitted};
use crate::support::child::Limited as _;
use crate::support::files::{Folder, text};
use crate::support::quiet::busy;
use crate::support::run::tdtool;
use serde_json::Value;
use std::process::Command;

/// Two threads that mark frames until they are killed.
const PROGRAM: &str = r#"
#include "tdtool.h"
#include <pthread.h>
static __thread volatile unsigned x;
__attribute__((noinline)) void step(void) { for (int i = 0; i < 20000; i++) x += i; }
static void *work(void *argument) {
    for (;;) {
        tdtool_begin("frame");
        { TDTOOL_REGION("inner"); step(); }
        step();
        tdtool_end("frame");
    }
    return argument;
}
int main(void) { pthread_t thread; pthread_create(&thread, 0, work, 0); work(0); }
"#;

/// The document of a window in which the regions were seen: on a busy machine in a longer one.
fn window(pid: &str, more: &[&str]) -> Option<Value> {
    for seconds in ["0.3", "2", "8", "20"] {
        let own = ["report", "--regions", "--format", "json", "-p", pid, "--duration", seconds];
        let ran = permitted(tdtool([&own, more].concat()))?.succeeded();
        let found = ran.json();
        let ended = |row: &Value| row["time"].as_f64().is_some();
        let rows = found["regions"].as_array().unwrap();
        if rows.len() > 1 && rows.iter().all(ended) && rows[0]["threads"].as_array()?.len() == 2 {
            return Some(found);
        }
    }
    panic!("nothing was seen of the process");
}

#[test]
fn regions_of_a_live_process_are_followed_twice_and_its_code_is_as_it_was() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = marked(&folder, PROGRAM, &["-O1"]) else { return };
    let running = Command::new(&program).start_limited().expect("started");
    let pid = running.id().to_string();
    for more in [&[][..], &["--module", text(&program)]] {
        let Some(found) = window(&pid, more) else { return };
        assert_eq!(found["process"].to_string(), pid);
        let names: Vec<&str> = found["regions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r["name"].as_str().unwrap())
            .collect();
        assert!(names.starts_with(&["frame", "inner"]) || names.contains(&"frame"), "{names:?}");
        let of = |name: &str| {
            let all = found["regions"].as_array().unwrap().iter();
            let inside = all.filter(|row| row["name"] == name);
            inside.map(|row| row["entries"].as_u64().unwrap()).sum::<u64>()
        };
        // Each thread may have been inside a frame at both ends of the window.
        assert!(of("frame").abs_diff(of("inner")) <= 2, "{found}");
        // Samples are of threads by number: each is known at the end of the window.
        let threads = found["regions"][0]["threads"].as_array().unwrap();
        assert!(threads.iter().all(|own| own["thread"].as_u64().is_some()), "{found}");
        if found["sampled"]["samples"].as_u64() > Some(50) {
            let tree = &found["regions"][0]["tree"];
            assert_eq!(tree["functions"][0]["name"], "step", "{tree}");
        }
        let notes = found["notes"].to_string();
        assert!(!notes.contains("without a begin"), "{notes}");
    }
    // What follows a command does not follow a process.
    let refused = tdtool(["report", "--regions", "-p", &pid, "--", "true"]);
    assert_eq!(refused.code(), Some(2), "{}", refused.stderr);
}
