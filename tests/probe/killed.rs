//! Runs of one command that do not end alike.

use crate::support::files::Folder;
use crate::support::quiet::busy;
use crate::support::run::tdtool;
use crate::support::tools::gcc;

/// Adds a byte to a file. When there are as many as the second argument says, it kills itself in the middle.
const PROGRAM: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
static long table[4096];
__attribute__((noipa)) long stride(long *a, long n, long end) {
    long sum = 0;
    for (long i = 0; i < n; i++) {
        sum += a[(3 * i) & 4095] ^ 0x12345678;
        if (i == end) raise(SIGUSR1);
    }
    return sum;
}
int main(int count, char **arguments) {
    struct stat found;
    FILE *file = fopen(arguments[1], "a");
    fputc('x', file);
    fclose(file);
    stat(arguments[1], &found);
    int is_last = found.st_size == atoi(arguments[2]);
    return stride(table, 3000000, is_last ? 1500000 : -1) == 1;
}
"#;

#[test]
fn a_run_that_was_killed_is_not_combined_with_whole_ones_unsaid() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), PROGRAM, &["-O1"], "program") else { return };
    // Runs: counts, addresses, latencies.
    for (number, name) in [(1, "the counted run"), (2, "run of addresses"), (3, "run of latencies")]
    {
        let file = folder.file(&format!("runs{number}"));
        let number = number.to_string();
        let arguments = ["count", "--loads", "--functions", "stride", "--format"];
        let command = ["--", super::name(&program), &file, &number];
        let ran = tdtool(arguments.iter().chain(&["json"]).chain(&command));
        if ran.stderr.contains("cannot trace") {
            eprintln!("skipped: {}", ran.stderr);
            return;
        }
        // As a shell has it: 128 + SIGUSR1.
        assert_eq!(ran.code(), Some(138), "{}", ran.stderr);
        let document = ran.json();
        let notes = document["notes"].to_string();
        assert!(notes.contains(name) && notes.contains("SIGUSR1"), "{notes}");
        let load = &document["loads"][0];
        assert!(load["extents"].as_str().is_some_and(|why| why.contains("SIGUSR1")), "{load}");
        let exits: Vec<String> =
            document["cost"].as_array().unwrap().iter().map(|c| c["exit"].to_string()).collect();
        let mut expected = [r#"{"status":0}"#; 3];
        expected[number.parse::<usize>().unwrap() - 1] = r#"{"signal":10}"#;
        assert_eq!(exits, expected);
    }
    // The same as text.
    let file = folder.file("runs");
    let arguments = ["count", "--loads", "--functions", "stride", "--"];
    let ran = tdtool(arguments.iter().chain(&[super::name(&program), &file, "3"]));
    let text = &ran.stderr;
    assert!(text.contains("(a[]) *") || text.contains("] *\n"), "the row is marked: {text}");
    // The answer first: what kinds of probes are comes last.
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
    assert!(
        at("\nhow: ") > at("\ncost: ") && at("\ncost: ") > at("  loop, by its head\n"),
        "{text}"
    );
}
