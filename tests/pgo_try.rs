//! `tdtool pgo --try`: a program against a copy that llvm-bolt optimised, or something else in its place.

use crate::support::files::{Folder, text};
use crate::support::quiet::{alone, busy};
use crate::support::run::{Ran, command, run};
use crate::support::tools::gcc;
use engine::pgo::bolt::installed;
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Counts down; of each 16 numbers one goes the way that the code expects. Prints its result, ends with status 3.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
__attribute__((noipa)) long rare(long x) { return x * 3; }
__attribute__((noipa)) long other(long x) { return x + 5; }
int main(int count, char **arguments) {
    long n = atol(arguments[1]), x = 1;
    for (; n > 0; n--) {
        if (__builtin_expect(n % 16 == 0, 1)) x = rare(x); else x = other(x);
    }
    printf("%ld\n", x);
    if (count > 2) printf("%p\n", (void *)&x);
    return 3;
}
"#;

/// What a program of tests needs to be optimised.
const OPTIONS: [&str; 3] = ["-O2", "-Wl,-q", "-fno-jump-tables"];

/// Tries the command of these words, with a folder before those of PATH if that is given.
fn tries(before: Option<&Folder>, words: &[&str]) -> Ran {
    let mut all = command([&["pgo", "--try"], words].concat());
    if let Some(folder) = before {
        let path = std::env::var("PATH").unwrap_or_default();
        all.env("PATH", format!("{}:{path}", text(folder.path())));
    }
    run(&mut all)
}

/// A program and a folder with a script in place of llvm-bolt; `None`, with a message, without a compiler.
fn with_bolt(script: &str) -> Option<(Folder, PathBuf)> {
    let folder = Folder::new();
    let program = gcc(folder.path(), PROGRAM, &OPTIONS, "program")?;
    let bolt = folder.file("llvm-bolt");
    std::fs::write(&bolt, format!("#!/bin/sh\n{script}\n")).unwrap();
    set_permissions(&bolt, Permissions::from_mode(0o755)).unwrap();
    Some((folder, program))
}

/// Whether the command cannot be traced here; says so.
fn is_untraced(ran: &Ran) -> bool {
    let is = ran.stderr.contains("ptrace");
    if is {
        eprintln!("skipped: {}", ran.stderr);
    }
    is
}

fn has_bolt() -> bool {
    let found = installed("llvm-bolt").is_some();
    if !found {
        eprintln!("skipped: no llvm-bolt here");
    }
    found
}

/// By the source: of 16 times 15 go where a jump leads; the copy goes straight on there.
#[test]
fn fewer_jumps_are_taken_in_the_copy_and_the_output_is_the_same() {
    if !has_bolt() {
        return;
    }
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), PROGRAM, &OPTIONS, "program") else { return };
    let (program, profile) = (text(&program), folder.file("profile"));
    let train = format!("{program} 160000");
    let words = ["--rounds", "2", "--format", "json", "--train", &train, "-o", &profile];
    let ran = tries(None, &[&words[..], &["--", program, "32000000"]].concat());
    if is_untraced(&ran) {
        return;
    }
    let document = ran.succeeded().json();
    assert_eq!(document["exit"]["status"], 3);
    assert_eq!(
        (&document["is_same_input"], &document["measured"][1]),
        (&false.into(), &"32000000".into())
    );
    assert_eq!(document["trained"][0][1], "160000");
    let value = |side: usize, name: &str| document["code"][side][name].as_u64().unwrap();
    for side in [0, 1] {
        assert_eq!(value(side, "calls") / 1000, 32_000, "{document}");
        assert!(value(side, "hot_lines") <= value(side, "lines") && value(side, "pages") >= 1);
    }
    assert!(value(0, "taken_jumps") > value(1, "taken_jumps"), "{document}");
    let rows = document["compared"]["software"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["id"] == "wall_ms" && row["b"].as_f64() > Some(0.0)));
    // The kept profile is that of the training.
    assert!(folder.read("profile").lines().any(|line| line.ends_with(" 150000 0")));
    assert!(!Path::new(&format!("{program}.bolt")).exists());
}

/// In place of the library that it is linked with, a copy runs.
#[test]
fn a_library_is_tried_by_a_preloaded_copy() {
    if !has_bolt() {
        return;
    }
    let _busy = busy();
    let folder = Folder::new();
    let source = PROGRAM.replace("int main", "int work");
    let options = [&OPTIONS[..], &["-shared", "-fPIC", "-Wl,-soname,library.so"]].concat();
    let Some(library) = gcc(folder.path(), &source, &options, "library.so") else { return };
    let main = "int work(int, char **); int main(int n, char **a) { return work(n, a); }";
    let rpath = format!("-Wl,-rpath,{}", text(folder.path()));
    let options = ["-O2", "-Wl,--no-as-needed", text(&library), &rpath];
    let Some(program) = gcc(folder.path(), main, &options, "program") else { return };
    let words = ["--rounds", "2", "--module", text(&library), "--format", "json"];
    let ran = tries(None, &[&words[..], &["--", text(&program), "16000000"]].concat());
    if is_untraced(&ran) {
        return;
    }
    let document = ran.succeeded().json();
    // Calls go by stubs of the linker, which are not counted.
    let of = |name: &str| [0, 1].map(|side| document["code"][side][name].as_u64().unwrap());
    let ([a, b], [taken, less]) = (of("instructions"), of("taken_jumps"));
    assert!(a > 16_000_000 && a.abs_diff(b) < 1000 && less < taken, "{document}");
}

/// The same program cannot be faster than it is: chance makes it so in one of twenty.
#[test]
fn a_copy_that_is_the_same_is_not_called_faster() {
    let _alone = alone();
    let Some((folder, program)) = with_bolt(r#"cp "$1" "$3""#) else { return };
    let words = ["--rounds", "10", "--format", "json", "--", text(&program), "40000000"];
    let mut found = Vec::new();
    for _ in 0..4 {
        let ran = tries(Some(&folder), &words);
        if is_untraced(&ran) {
            return;
        }
        let document = ran.succeeded().json();
        assert_eq!(document["exit"]["status"], 3);
        assert_eq!(document["is_same_input"], true);
        found.push(document["change"].clone());
        if found.iter().any(|change| change["verdict"] != "faster") {
            return;
        }
    }
    panic!("{found:?}");
}

#[test]
fn what_an_optimiser_makes_wrong_is_refused() {
    let _busy = busy();
    let other = r#"printf '#!/bin/sh\necho 7\nexit 3\n' > "$3"; chmod +x "$3""#;
    let ends = r#"printf '#!/bin/sh\nexit 4\n' > "$3"; chmod +x "$3""#;
    let cases = [
        ("echo first >&2; echo 'no such function' >&2; exit 1", "no such function"),
        ("exit 0", "wrote no program"),
        (other, "standard output differs from byte 0 on"),
        (ends, "the copy ended with status 4"),
    ];
    for (script, part) in cases {
        let Some((folder, program)) = with_bolt(script) else { return };
        let ran = tries(Some(&folder), &["--", text(&program), "2000000"]);
        if is_untraced(&ran) {
            return;
        }
        assert_eq!((ran.code(), &*ran.stdout), (Some(1), ""), "{script}: {}", ran.stderr);
        assert!(ran.stderr.contains(part), "{script}: {}", ran.stderr);
        assert!(ran.stderr.contains("try:"), "{}", ran.stderr);
    }
}

#[test]
fn what_cannot_be_tried_is_refused_with_a_remedy() {
    let _busy = busy();
    let Some((folder, program)) = with_bolt(r#"cp "$1" "$3""#) else { return };
    let fixed = gcc(folder.path(), PROGRAM, &["-O2"], "without").unwrap();
    let (program, fixed, script) = (text(&program), text(&fixed), folder.file("llvm-bolt"));
    let cases: [(&[&str], i32, &str); 5] = [
        (&["--", fixed, "2000000"], 1, "-Wl,-q"),
        (&["--", &script], 1, "it is a script, run by /bin/sh"),
        (&["--", program, "9000000", "x"], 3, "two runs of the command differ"),
        (&["--module", program, "--", "sh", "-c", "true"], 1, "does not start"),
        (&["--for", "lld", "--", program, "1"], 2, "llvm-bolt makes"),
    ];
    for (words, code, part) in cases {
        let ran = tries(Some(&folder), words);
        if is_untraced(&ran) {
            return;
        }
        assert_eq!(ran.code(), Some(code), "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(part), "{words:?}: {}", ran.stderr);
    }
    let empty = Folder::new();
    let ran = run(command(["pgo", "--try", "--", program, "1"]).env("PATH", empty.path()));
    assert_eq!(ran.code(), Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("bolt-19"), "{}", ran.stderr);
}
