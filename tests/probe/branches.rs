//! `tdtool count --branches`: what no predictor can know is modelled as mispredicted, what all know is not.

use crate::support::files::{Folder, root};
use crate::support::quiet::busy;
use crate::support::run::tdtool;
use crate::support::tools::gcc;

/// A random branch and a loop of five trips in each of 200,000 iterations, and a random indirect call.
const PROGRAM: &str = r#"
__attribute__((noipa)) void f0(void) {}
__attribute__((noipa)) void f1(void) {}
static void (*volatile table[2])(void) = {f0, f1};
__attribute__((noipa)) long run(long n) {
    unsigned long x = 88172645463325252ul, all = 0;
    for (long i = 0; i < n; i++) {
        x ^= x << 13; x ^= x >> 7; x ^= x << 17;
        if (x & 0x100) { all += 1; __asm__ volatile("" : "+r"(all)); } else { all ^= i; __asm__ volatile("" : "+r"(all)); }
        #pragma GCC unroll 1
        for (int k = 0; k < 5; k++) __asm__ volatile("" : "+r"(all));
        table[x >> 40 & 1]();
    }
    return all;
}
int main(void) { return run(200000) == 0; }
"#;

#[test]
fn random_branches_are_mispredicted_half_of_the_time_and_short_loops_never() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), PROGRAM, &["-O1"], "program") else { return };
    let name = super::name(&program);
    let out = folder.file("count.json");
    let arguments = ["count", "--branches", "--plain", "--functions", "run", "--format", "json"];
    let ran = tdtool(arguments.iter().copied().chain(["-o", out.as_str(), "--", name]));
    if ran.code() != Some(0) && ran.stderr.contains("ptrace") {
        return eprintln!("skipped: {}", ran.stderr);
    }
    ran.succeeded();
    let document: serde_json::Value = serde_json::from_str(&folder.read("count.json")).unwrap();
    let branches = document["branches"].as_array().unwrap();
    let shares = |kind: &str| -> Vec<f64> {
        let own = branches.iter().filter(|b| b["kind"] == kind);
        own.filter_map(|b| Some(b["mispredicted"]["value"].as_f64()? / 200_000.0)).collect()
    };
    let is_half = |share: &f64| (0.45..0.55).contains(share);
    let (conditional, indirect) = (shares("conditional"), shares("indirect"));
    assert_eq!(conditional.iter().filter(|s| is_half(s)).count(), 1, "{conditional:?}");
    assert!(conditional.iter().all(|s| is_half(s) || *s < 0.01), "{conditional:?}");
    assert!(indirect.len() == 1 && is_half(&indirect[0]), "{indirect:?}");
    // The inner loop, by the source.
    let inner = document["loops"].as_array().unwrap().iter().find(|l| l["trips"]["mean"] == 5.0);
    let seen = inner.expect("a loop of five trips")["trips"]["histogram"].as_array().unwrap();
    assert!(seen.len() == 1 && seen[0][0] == 5, "{seen:?}");
    // What ran once, at the start, is in no burst that counts.
    let known: Vec<_> =
        branches.iter().map(|b| &b["mispredicted"]).filter(|m| !m.is_null()).collect();
    assert!(known.len() > 2 && known.iter().all(|m| m["source"] == "modelled"), "{known:?}");
    // All have their function and executions, and those without a number a reason.
    for branch in branches {
        let is_known = !branch["mispredicted"].is_null();
        assert!(branch["function"] == "run" && branch["executions"].is_u64(), "{branch}");
        assert_ne!(is_known, branch["reason"].is_string(), "{branch}");
    }
    let ran = tdtool(["count", "--branches", "--functions", "run", "--", name]);
    let rows: Vec<&str> = ran.stderr.lines().filter(|l| l.contains(" run, indirect")).collect();
    assert!(rows.len() == 1 && rows[0].contains("        200000  0x"), "{}", ran.stderr);
    assert!(ran.stderr.contains("\nhow: "), "{}", ran.stderr);
    let runs: Vec<_> = document["cost"].as_array().unwrap().iter().map(|c| &c["run"]).collect();
    assert_eq!(runs, ["counts", "branches"]);
    assert!(document["cost"][1]["plain"].as_f64().is_some());
}

/// A call that is in the code and never made is not what its notes are about.
#[test]
fn notes_on_indirect_calls_are_where_some_are_made() {
    let _busy = busy();
    let folder = Folder::new();
    let (call, rarely) = ("table[x >> 40 & 1]();", "if (*flag) table[x >> 40 & 1]();");
    let never = format!("static volatile int flag[1];{}", PROGRAM.replace(call, rarely));
    for (source, is_made) in [(PROGRAM, true), (&never, false)] {
        let Some(program) = gcc(folder.path(), source, &["-O1"], "program") else { return };
        let arguments = ["count", "--branches", "--functions", "run", "--format", "json", "--"];
        let ran = tdtool(arguments.into_iter().chain([super::name(&program)]));
        if ran.code() != Some(0) && ran.stderr.contains("ptrace") {
            return eprintln!("skipped: {}", ran.stderr);
        }
        let document = ran.succeeded().json();
        let has = |kind: &str| document["branches"].to_string().contains(kind);
        assert!(has("indirect"), "both have the code of one: {document}");
        let model = document["model"].to_string();
        assert_eq!(model.contains("indirect calls"), is_made, "{model}");
    }
}

/// Two names of one function: the one that a profile shows; both name it.
#[test]
fn a_function_with_two_names_has_the_one_that_a_profile_shows() {
    let _busy = busy();
    let folder = Folder::new();
    let source = "__attribute__((noipa)) int __twice(int n) { return n + n; }\n\
                  int twice(int) __attribute__((alias(\"__twice\")));\n\
                  int main(void) { return twice(3) != 6; }";
    let Some(program) = gcc(folder.path(), source, &["-O1"], "program") else { return };
    for asked in ["twice", "__twice"] {
        let ran = tdtool(["count", "--functions", asked, "--", super::name(&program)]);
        if ran.code() != Some(0) && ran.stderr.contains("ptrace") {
            return eprintln!("skipped: {}", ran.stderr);
        }
        let ran = ran.succeeded();
        let (own, other) = (ran.stderr.contains(" twice"), ran.stderr.contains("__twice"));
        assert!(own && !other, "{}", ran.stderr);
    }
}

/// Each call of `deep` comes from one of two places at random, down to a depth of argument 1.
const DEEP: &str = r#"
#include <stdlib.h>
__attribute__((noipa)) long deep(long n, unsigned long x) {
    if (n == 0) return x;
    x ^= x << 13; x ^= x >> 7; x ^= x << 17;
    long r;
    if (x & 0x100) { r = deep(n - 1, x); __asm__ volatile("" : "+r"(r)); r += 1; }
    else { r = deep(n - 1, x); __asm__ volatile("" : "+r"(r)); r ^= 5; }
    return r;
}
int main(int count, char **arguments) {
    unsigned long x = 88172645463325252ul;
    long depth = atol(arguments[1]);
    for (long i = 0; i < 200000 / depth; i++) x = deep(depth, x) | 1;
    return x == 0;
}
"#;

/// By hand: the stack of 32 return addresses has those of the innermost 32 of 101 calls. Below, it predicts that of the
/// call 32 deeper, which came from the same place half of the time: (68 · ½ + 1) ÷ 101 = 0.35.
#[test]
fn returns_are_mispredicted_where_calls_nest_deeper_than_the_stack() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), DEEP, &["-O1"], "program") else { return };
    let out = folder.file("count.json");
    for (depth, low, high) in [("20", 0.0, 0.001), ("100", 0.31, 0.39)] {
        let arguments = ["count", "--branches", "--functions", "deep", "--format", "json"];
        let command = ["-o", out.as_str(), "--", super::name(&program), depth];
        let ran = tdtool(arguments.iter().copied().chain(command));
        if ran.code() != Some(0) && ran.stderr.contains("ptrace") {
            return eprintln!("skipped: {}", ran.stderr);
        }
        ran.succeeded();
        let document: serde_json::Value = serde_json::from_str(&folder.read("count.json")).unwrap();
        let branches = document["branches"].as_array().unwrap();
        let row = branches.iter().find(|b| b["kind"] == "return").expect("returns of `deep`");
        let executions = row["executions"].as_f64().unwrap();
        let share = row["mispredicted"]["value"].as_f64().unwrap() / executions;
        assert!((low..=high).contains(&share), "{depth} deep: {share} of {executions}");
    }
}

/// What the self-test found, and what it did not, is one line beside the counts, and more with `-v`.
#[test]
fn what_the_model_rests_on_is_one_line_and_the_rest_with_verbose() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), PROGRAM, &["-O1"], "program") else { return };
    let kept = std::fs::read_to_string(root().join("tests/processors/self-tests/zen4.json"));
    let kept: serde_json::Value = serde_json::from_str(&kept.unwrap()).unwrap();
    let mut open = kept.clone();
    // As if none of its branches could be timed.
    open["cycles"].as_object_mut().unwrap().retain(|test, _| test.starts_with("mix "));
    for (answers, is_open) in [(kept, false), (open, true)] {
        let file = folder.write("self-test.json", answers.to_string());
        let of = |more: &[&str]| {
            let asked = ["--self-test-from", &file, "count", "--branches", "--functions", "run"];
            tdtool(asked.iter().chain(more).copied().chain(["--", super::name(&program)]))
        };
        let ran = of(&[]);
        if ran.code() != Some(0) && ran.stderr.contains("ptrace") {
            return eprintln!("skipped: {}", ran.stderr);
        }
        let model = |text: &str| -> Vec<String> {
            let is_one = |line: &&str| {
                line.starts_with("note:")
                    && ["mispredict", "predicted", "outcomes"]
                        .iter()
                        .any(|word| line.contains(word))
            };
            text.lines().filter(is_one).map(str::to_owned).collect()
        };
        let brief = model(&ran.stderr);
        assert_eq!(brief.len(), 1, "{}", ran.stderr);
        for said in ["5 of 5 properties", "cycles are not known"] {
            assert_eq!(brief[0].contains(said), is_open, "{said}: {}", brief[0]);
        }
        assert!(!is_open || brief[0].contains("--self-test"), "{}", brief[0]);
        let verbose = model(&of(&["-v"]).stderr);
        assert!(verbose.len() >= 4 && verbose.contains(&brief[0]), "{verbose:?}");
        let document = of(&["--format", "json"]).json();
        assert_eq!(document["model"].as_array().map(Vec::len), Some(verbose.len() - 1));
    }
}
