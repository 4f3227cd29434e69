//! The verdict of `.ci/tests` on tests that fail: with a cargo that prints what cargo 1.95 does, shortened.

use crate::support::files::{Folder, root};
use crate::support::run::{Ran, program, run};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

/// All tests: the output and status. One test: as the file of its name says.
const CARGO: &str = r#"#!/bin/sh
echo "$@" >> asked
case "$*" in
  *--no-fail-fast) cat all; exit "$(cat status)" ;;
esac
for name; do :; done
[ "$name" = is::slow ] && exec sleep 1000
if [ "$name" = is::bad ]; then echo "test result: FAILED. 0 passed; 1 failed; 0 ignored"; exit 101; fi
if [ "$name" = is::gone ]; then echo "test result: ok. 0 passed; 0 failed; 0 ignored"; exit 0; fi
echo "test result: ok. 1 passed; 0 failed; 0 ignored"
"#;

/// A binary whose tests of these names failed, the first of which printed a list of its own.
fn binary(options: &str, failed: &[&str]) -> String {
    let [ran, result] = match failed {
        [] => ["ok", "test result: ok. 2 passed; 0 failed; 0 ignored"],
        _ => ["FAILED", "test result: FAILED. 1 passed; 1 failed; 0 ignored"],
    };
    let lines = |start: &str, end: &str| -> String {
        failed.iter().map(|name| format!("{start}{name}{end}\n")).collect()
    };
    let mut text = format!("     Running tests/main.rs (target/debug/deps/user-1)\n\n{ran}\n");
    text += &lines("test ", " ... FAILED");
    if !failed.is_empty() {
        text += "\nfailures:\n\n---- one stdout ----\nfailures:\n    printed::by_a_test\n";
        text += &format!("\nfailures:\n{}", lines("    ", ""));
    }
    text += &format!("\n{result}\n\n");
    if !failed.is_empty() {
        text += &format!("error: test failed, to rerun pass `{options}`\n");
    }
    text
}

/// What the script says of all this, and what it asked cargo for.
fn judged(status: u32, all: &str) -> (Ran, String) {
    let folder = Folder::new();
    let cargo = folder.write("bin/cargo", CARGO);
    fs::set_permissions(cargo, fs::Permissions::from_mode(0o755)).unwrap();
    folder.write("all", all);
    folder.write("status", format!("{status}\n"));
    let path = format!("{}:{}", folder.file("bin"), std::env::var("PATH").unwrap());
    let mut script = program("bash");
    script.arg(root().join(".ci/tests")).args(["cargo", "test"]).current_dir(folder.path());
    script.env("PATH", path).env("TDTOOL_CI_TEST_SECONDS", "1");
    let ran = run(&mut script);
    (ran, folder.read("asked"))
}

/// The lines about tests that failed.
fn said(ran: &Ran) -> Vec<&str> {
    let is_ours = |line: &&str| line.starts_with("flaky: ") || line.starts_with("failed: ");
    ran.stdout.lines().filter(is_ours).collect()
}

#[test]
fn tests_that_pass_are_run_once() {
    let (ran, asked) = judged(0, &binary("--lib", &[]));
    assert_eq!((ran.code(), asked.as_str()), (Some(0), "test --no-fail-fast\n"), "{}", ran.stdout);
    assert_eq!(said(&ran), [""; 0]);
}

#[test]
fn up_to_three_flaky_tests_are_named_and_are_no_failure() {
    let one = [&binary("-p tdtool --test user", &["a::b"]), "error: 1 target failed:\n"].concat();
    let (ran, asked) = judged(101, &one);
    assert_eq!((ran.code(), said(&ran)), (Some(0), vec!["flaky: a::b"]), "{}", ran.stdout);
    assert_eq!(asked, "test --no-fail-fast\ntest -p tdtool --test user -- --exact a::b\n");
    let doc = binary("-p tdtool-isa --doc", &["src/isa/lib.rs - code (line 7)"]);
    let three = [&binary("--lib", &["a", "b"]), &doc[..], "error: 2 targets failed:\n"].concat();
    let (ran, asked) = judged(101, &three);
    assert_eq!((ran.code(), said(&ran).len()), (Some(0), 3), "{}", ran.stdout);
    assert!(asked.ends_with("test -p tdtool-isa --doc -- src/isa/lib.rs\n"), "{asked}");
}

#[test]
fn more_flaky_tests_are_a_failure() {
    let four = [&binary("--lib", &["a", "b"]), &binary("--test user", &["c", "d"])[..]].concat();
    let (ran, _) = judged(101, &(four + "error: 2 targets failed:\n"));
    assert_eq!((ran.code(), said(&ran).len()), (Some(1), 5), "{}", ran.stdout);
}

#[test]
fn what_fails_alone_too_is_a_failure() {
    for name in ["is::bad", "is::slow", "is::gone"] {
        let all = [&binary("--lib", &["a", name]), "error: 1 target failed:\n"].concat();
        let (ran, _) = judged(101, &all);
        let failed = format!("failed: {name}");
        assert_eq!(ran.code(), Some(1), "{}", ran.stdout);
        assert_eq!(said(&ran)[..2], ["flaky: a", &failed], "{}", ran.stdout);
    }
}

#[test]
fn what_is_no_failed_test_is_a_failure() {
    let crash = "error: test failed, to rerun pass `--lib`\n\nCaused by:\n  process didn't exit successfully: `a` \
                 (signal: 6, SIGABRT: process abort signal)\n";
    let flaky = binary("--test user", &["a"]);
    for (status, all) in [
        (101, "error: could not compile `tdtool` (lib) due to 1 previous error\n".to_owned()),
        (101, [crash, &flaky, "error: 2 targets failed:\n"].concat()),
        // A target that is not recognized.
        (101, [&flaky, "error: 2 targets failed:\n"].concat()),
        (
            101,
            [&flaky, "error: could not compile `tdtool` (lib) due to 1 previous error\n"].concat(),
        ),
        (124, flaky.clone()),
    ] {
        let (ran, _) = judged(status, &all);
        assert_eq!(ran.code(), Some(1), "{all}: {}", ran.stdout);
        assert!(said(&ran).iter().any(|line| line.starts_with("failed: ")), "{}", ran.stdout);
    }
}
