//! `tdtool pgo`: profiles for AutoFDO and Propeller, by what reads them.

use crate::pgo::{installed, profiled, symbols};
use crate::probe::counts::PLAIN;
use crate::support::files::{Folder, text};
use crate::support::quiet::busy;
use crate::support::run::{run, tdtool};
use crate::support::shown;
use crate::support::tools::{build, gcc, tool};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// create_llvm_prof attributes the counts to functions: as many calls and trips. It reads DWARF 4.
#[test]
fn create_llvm_prof_reads_the_profile() {
    let Some(reader) = installed(&["create_llvm_prof"]) else { return };
    let _busy = busy();
    for more in ["-pie", "-no-pie"] {
        let folder = Folder::new();
        let options = ["-O2", "-gdwarf-4", more];
        let Some(program) = gcc(folder.path(), PLAIN, &options, "program") else { return };
        let Some((_, ran)) = profiled(&folder, &program, &["--for", "autofdo"]) else { return };
        assert!(ran.stderr.contains("create_llvm_prof"), "{}", ran.stderr);
        let made = folder.file("made");
        run(Command::new(&reader).args([
            "--profiler=text",
            "--format=text",
            &format!("--profile={}", folder.file("profile")),
            &format!("--binary={}", text(&program)),
            &format!("--out={made}"),
        ]))
        .succeeded();
        // `NAME:TOTAL:CALLS`, then lines of the function: ` LINE: COUNT`.
        let text = folder.read("made");
        let calls = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
            line.and_then(|line| line.split(':').nth(1)?.parse::<u64>().ok())
        };
        assert_eq!([calls("fib"), calls("nested")], [Some(242_785), Some(1)], "{more}: {text}");
        assert!(text.lines().any(|line| line.ends_with(": 210000")), "{more}: {text}");
    }
}

/// Of each ten calls of `step` nine go straight to its end, past two blocks of which one never runs.
const STEPS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) long step(long n, long x) {
    if (n < 0) { printf("never %ld\n", n); x = x * 7 + n; }
    if (n % 10 == 0) { x ^= n; __asm__ volatile("" : "+r"(x)); }
    return x + 1;
}
int main(int count, char **arguments) {
    long x = 0;
    for (long i = 0; i < 5000; i++) x = step(i, x);
    FILE *out = fopen(arguments[1], "w");
    fprintf(out, "%ld\n", x);
    return 3;
}
"#;

/// clang places the blocks of the list: what never ran is elsewhere, and the program does the same.
#[test]
fn clang_places_blocks_in_the_order_of_the_profile() {
    if installed(&["clang-19"]).is_none() || installed(&["ld.lld-19"]).is_none() {
        return;
    }
    let _busy = busy();
    for more in ["-pie", "-no-pie"] {
        let folder = Folder::new();
        let options = ["-O2", "-fPIE", "-fbasic-block-sections=labels", more];
        let Some(program) = build(folder.path(), "clang-19", STEPS, &options, "program") else {
            return;
        };
        let Some((list, ran)) = profiled(&folder, &program, &["--for", "propeller"]) else {
            return;
        };
        assert!(ran.stderr.contains("-fbasic-block-sections=list="), "{}", ran.stderr);
        let expected = folder.read("result");
        let is_step = |line: &&str| line.split(' ').eq(["f", "step"]);
        let own = list.lines().skip_while(|line| !is_step(line)).nth(1).expect(&list);
        // Numbers as LLVM reads them: `ID: NUMBER` below `Name: step`.
        let map =
            tool("llvm-readobj-19", &["--bb-addr-map", text(&program)]).expect("comes with lld");
        let fields = |part: &'_ str| -> Vec<(String, String)> {
            let all = part.lines().filter_map(|line| line.trim().split_once(": "));
            all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
        };
        let name = ("Name".to_owned(), "step".to_owned());
        let of_step = map.split("Function {").map(fields).find(|all| all.contains(&name));
        let of_step = of_step.expect(&map);
        let all = of_step.iter().filter(|(name, _)| name == "ID");
        let all: Vec<&str> = all.map(|(_, number)| number.as_str()).collect();
        let listed: Vec<&str> = own.split(' ').skip(1).collect();
        assert!(listed.first() == Some(&"0") && listed.len() < all.len(), "{list} {all:?}");
        assert!(listed.iter().all(|number| all.contains(number)), "{list} {all:?}");
        let option = format!("-fbasic-block-sections=list={}", folder.file("profile"));
        let options = ["-O2", "-fPIE", &option, "-fuse-ld=lld", more];
        let made =
            build(folder.path(), "clang-19", STEPS, &options, "made").expect("clang is there");
        assert!(symbols(&made).contains_key("step.cold"), "{list}");
        assert_eq!(run(Command::new(&made).arg(folder.file("result"))).code(), Some(3));
        assert_eq!(folder.read("result"), expected);
    }
}

/// Without numbers of blocks there is no order of them.
#[test]
fn blocks_without_numbers_are_refused() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), PLAIN, &["-O2"], "program") else { return };
    let Some(_) = profiled(&folder, &program, &["--for", "counts"]) else { return };
    let ran = tdtool(["pgo", "--for", "propeller", "-o", "-", &folder.file("profile")]);
    assert_eq!(ran.code(), Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("-fbasic-block-address-map"), "{}", ran.stderr);
    // A command is not even run.
    let result = folder.file("none");
    let ran = tdtool(["pgo", "--for", "propeller", "-o", "-", "--", text(&program), &result]);
    assert_eq!(ran.code(), Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("-fbasic-block-address-map"), "{}", ran.stderr);
    assert!(!Path::new(&result).exists());
}

/// A map of a version to come is in the way of what needs it alone.
#[test]
fn an_unknown_map_of_blocks_is_in_the_way_of_propeller_alone() {
    let _busy = busy();
    let folder = Folder::new();
    let map = r#"__asm__(".section .llvm_bb_addr_map,\"\",@progbits\n.byte 99, 0\n.text\n");"#;
    let source = format!("{PLAIN}\n{map}\n");
    let Some(program) = gcc(folder.path(), &source, &["-O2"], "program") else { return };
    let Some(_) = profiled(&folder, &program, &["--for", "counts"]) else { return };
    let made = |reader: &str| tdtool(["pgo", "--for", reader, "-o", "-", &folder.file("profile")]);
    for reader in ["bolt", "profgen", "lld"] {
        made(reader).succeeded();
    }
    let json = made("json").succeeded();
    let json: Value = serde_json::from_str(&json.stdout).expect(&json.stdout);
    assert!(json["clusters"].is_null() && json["notes"].to_string().contains(".llvm_bb_addr_map"));
    let refused = made("propeller");
    assert_eq!(refused.code(), Some(1), "{}", refused.stderr);
    assert_shown!("a_map_of_blocks_that_is_not_known", shown::outputs(&refused, &folder));
}
