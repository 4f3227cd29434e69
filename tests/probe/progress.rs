//! Runs of `count` and `prefetch` on a terminal: each is shown as it begins, with the time that is left.

use crate::support::files::Folder;
use crate::support::pty::on_terminal_of;
use crate::support::quiet::busy;
use crate::support::run::{command, tdtool};
use crate::support::tools::gcc;

/// Loads at random places, for long enough to be sampled.
const PROGRAM: &str = r#"
static volatile unsigned table[1 << 22];
__attribute__((noipa)) unsigned walk(unsigned n) {
    unsigned x = n;
    for (unsigned i = 0; i < n; i++) x = x * 1664525u + table[(x >> 8) % (1 << 22)] + 1;
    return x;
}
int main(void) { return walk(30000000) == 1; }
"#;

#[test]
fn each_run_is_shown_with_the_time_that_is_left() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), PROGRAM, &["-O1"], "progress") else { return };
    let program = program.display().to_string();
    let possible = tdtool(["count", "--functions", "walk", "--loads", "--", &program]);
    need!(possible.status.success() && possible.stderr.contains("mean ns"), possible.stderr);
    assert!(!possible.stderr.contains(" s left"), "{}", possible.stderr);

    let (status, shown) =
        on_terminal_of(100, command(["count", "--functions", "walk", "--loads", "--", &program]));
    assert!(status.success(), "{shown}");
    assert!(shown.contains("1 of 3: counts\r\n") && shown.contains("2 of 3: loads, "), "{shown:?}");
    assert!(shown.contains(" s left"), "{shown:?}");

    let sampled = tdtool(["count", "--hot", "--", &program]);
    need!(sampled.status.success(), sampled.stderr);
    for words in [&["count", "--hot", "--loads", "--"][..], &["prefetch", "--"]] {
        let (_, shown) = on_terminal_of(100, command([words, &[&program]].concat()));
        assert!(shown.contains("1 of 4: samples"), "{words:?}: {shown:?}");
        assert!(shown.contains("2 of 4: counts, "), "{words:?}: {shown:?}");
        assert!(shown.contains("3 of 4: loads, "), "{words:?}: {shown:?}");
        assert_eq!(shown.matches(" s left").count(), 2, "{words:?}: {shown:?}");
    }
}
