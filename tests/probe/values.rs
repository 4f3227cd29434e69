//! `tdtool count --values`: registers at the entries of blocks are those that the program was written to have.

use super::symbol;
use crate::support::files::Folder;
use crate::support::quiet::busy;
use crate::support::run::tdtool;
use crate::support::tools::gcc;
use serde_json::Value;
use std::path::Path;

/// Call c: the sum of 100 or 50 numbers on the heap (by turns), an item of 48 bytes of a static array, a word of
/// the stack, c² mod 1009, and whether c is odd.
const PROGRAM: &str = r#"
#include <stdlib.h>
#include <unistd.h>
struct item { long key, others[5]; };
static _Alignas(4096) struct item items[200];
long f(long *a, int n, char odd, struct item *item, long *local, int number);
__asm__(".globl f\n.type f,@function\n"
    "f: xor %eax,%eax\n xor %r10d,%r10d\n"
    ".globl head\nhead: mov (%rdi,%r10,8),%r11\n add %r11,%rax\n add (%rcx),%rax\n mov %r11,(%r8)\n"
    " add %r9d,(%r8)\n inc %r10\n cmp %esi,%r10d\n jl head\n"
    " test %dl,%dl\n je 2f\n neg %rax\n"
    ".globl tail\ntail: 2: mov %rax,%rax\n nopw 0(%rax)\n ret\n.size f,.-f\n");
int main(void) {
    long local, sum = 0, *a = aligned_alloc(64, 6400);
    for (int i = 0; i < 100; i++) a[i] = i;
    for (int c = 0; c < 200; c++) {
        sum += f(a, c % 2 ? 50 : 100, c % 2, items + c, &local, c * c % 1009);
        if (c % 50 == 49) usleep(30000);
    }
    return sum == 1;
}
"#;

/// The document's rows about values; `None` where tracing is not permitted.
fn counted(program: &Path, folder: &Folder, values: &str) -> Option<Value> {
    let out = folder.file("count.json");
    let name = super::name(program);
    let arguments = ["count", "--functions", "f", values, "--format", "json", "-o", &out, "--"];
    let ran = tdtool(arguments.iter().copied().chain([name]));
    if ran.code() != Some(0) && ran.stderr.contains("ptrace") {
        eprintln!("skipped: {}", ran.stderr);
        return None;
    }
    ran.succeeded();
    Some(serde_json::from_str(&folder.read("count.json")).unwrap())
}

fn block(document: &Value, at: u64) -> &Value {
    let rows = document["values"].as_array().unwrap();
    rows.iter().find(|row| row["block"] == format!("{at:#x}")).unwrap()
}

fn register<'a>(block: &'a Value, name: &str) -> &'a Value {
    let all = block["registers"].as_array().unwrap();
    all.iter().find(|r| r["register"] == name).unwrap_or_else(|| panic!("{name}: {block}"))
}

#[test]
fn registers_at_entries_are_those_of_the_program() {
    let _busy = busy();
    for options in [&["-O1"][..], &["-O1", "-no-pie"]] {
        let folder = Folder::new();
        let Some(program) = gcc(folder.path(), PROGRAM, options, "program") else { return };
        let tail = symbol(&program, "tail");
        let Some(document) = counted(&program, &folder, &format!("--values={tail:#x}")) else {
            return;
        };
        let start = block(&document, symbol(&program, "f"));
        assert_eq!((&start["of"], &start["entries"]), (&"function".into(), &200.into()));
        // 50 calls at a time, of which 64 are recorded whenever tdtool comes to it.
        let sampled = start["sampled"].as_u64().unwrap();
        assert!((64..=200).contains(&sampled), "{start}");
        let names: Vec<&str> = start["registers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r["register"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["rcx", "dl", "esi", "rdi", "r8", "r9d"], "what is read later");
        let regions = |row: &Value| row["regions"][0]["region"].as_str().map(str::to_owned);
        let array = register(start, "rdi");
        assert_eq!((&array["kind"], regions(array)), (&"constant".into(), Some("heap".into())));
        assert!(array["alignment"].as_u64().unwrap() >= 64, "{array}");
        let local = register(start, "r8");
        assert_eq!((&local["kind"], regions(local)), (&"constant".into(), Some("stack".into())));
        let item = register(start, "rcx");
        assert_eq!((&item["kind"], regions(item)), (&"pointer".into(), Some("program".into())));
        // 48 c from a page on.
        assert_eq!((&item["alignment"], &item["stride"]), (&16.into(), &48.into()), "{item}");
        for (name, values) in [("esi", [50, 100]), ("dl", [0, 1])] {
            let few = register(start, name);
            let mut seen: Vec<i64> = Vec::new();
            for one in few["values"].as_array().unwrap() {
                assert!((one["share"].as_f64().unwrap() - 0.5).abs() < 0.02, "{few}");
                seen.push(one["value"].as_i64().unwrap());
            }
            seen.sort_unstable();
            assert_eq!((&few["kind"], &seen[..]), (&"few".into(), &values[..]));
        }
        let spread = register(start, "r9d");
        let of = |key: &str| spread[key].as_i64().unwrap();
        assert_eq!(spread["kind"], "spread", "{spread}");
        // Quadratic residues.
        assert!(
            of("min") < 20 && of("max") > 980 && (350..650).contains(&of("median")),
            "{spread}"
        );
        let head = block(&document, symbol(&program, "head"));
        assert_eq!((&head["of"], &head["entries"]), (&"loop".into(), &15_000.into()));
        let index = register(head, "r10");
        assert_eq!((&index["kind"], &index["stride"]), (&"range".into(), &1.into()), "{index}");
        assert!(
            index["min"] == 0 && (49..100).contains(&index["max"].as_i64().unwrap()),
            "{index}"
        );
        let last = block(&document, tail);
        assert_eq!(
            (&last["of"], &last["registers"][0]["register"]),
            (&"block".into(), &"rax".into())
        );
        let notes = document["notes"].to_string();
        assert!(notes.contains("entries"), "{notes}");
        assert_eq!(document["cost"][1]["run"], "values");
    }
}
