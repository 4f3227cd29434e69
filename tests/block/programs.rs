//! Blocks of programs: by function and number, by address, listed.

use super::{block, hex, json, notes_core_alone, sandbox};
use crate::support::child::Limited as _;
use crate::support::files::{Folder, text};
use crate::support::run::{self, tdtool};
use crate::support::shown;
use crate::support::tools::{gcc, tool};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

/// Two functions whose blocks follow from the text. `tail` is `inc rax; ret`; `count` is 0: xor; 1:
/// inc, add, cmp, jl; 2: ret.
const BLOCKS: &str = r#"__asm__(".globl count\n.type count,@function\ncount:\n xor %eax,%eax\n"
    "1: inc %rax\n add %rax,%rbx\n cmp $9,%rax\n jl 1b\n ret\n.size count,.-count\n"
    ".globl tail\n.type tail,@function\ntail:\n inc %rax\n ret\n.size tail,.-tail\n");
    int main(void) { return 0; }"#;

#[test]
fn the_blocks_of_a_function_are_listed_with_their_numbers_and_loops() {
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), BLOCKS, &["-O1"], "program") else { return };
    let of = |place: &str| format!("{}:{place}", text(&program));
    let output = block(["--list", &of("count"), "--format", "json"]);
    let listed = output.json();
    let columns = |key: &str| -> Vec<Value> {
        listed["blocks"].as_array().unwrap().iter().map(|b| b[key].clone()).collect()
    };
    assert_eq!(columns("instructions"), [1, 4, 1]);
    assert_eq!(columns("loop_depth"), [0, 1, 0]);
    assert_eq!(columns("first"), ["xor eax,eax", "inc rax", "ret"]);
    let inside = columns("start")[1].as_str().unwrap().to_owned();
    let same = block(["--list", &of(&inside), "--format", "json"]);
    assert_eq!(same.stdout, output.stdout, "an address names its function");
    let lines = block(["--list", &of("count"), "--ascii"]).stdout;
    assert!(lines.is_ascii() && lines.contains("+1") && lines.contains("jl "), "{lines}");
    let Some(_busy) = sandbox() else { return };
    let first = json(&[&of("count")]);
    let note = first["notes"][0].as_str().unwrap();
    assert!(note.contains("--list"), "{first}");
    assert!(notes_core_alone(&json(&[&of("count+0")])));
}

#[test]
fn a_programs_block_is_measured_without_what_leaves_it() {
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), BLOCKS, &["-O1"], "program") else { return };
    let Some(_busy) = sandbox() else { return };
    let of = |place: &str| format!("{}:{place}", text(&program));
    let tail = json(&[&of("tail")]);
    assert_eq!(hex(&tail), "48ffc0");
    assert!(tail["notes"][0].as_str().unwrap().contains("`ret`"), "{tail}");
    // Nothing else is in it; and bytes without a program stay as given.
    for place in [of("count+2"), "48ffc0c3".to_owned()] {
        let refused = json(&[&place]);
        assert_eq!(refused["status"], "rejected", "{refused}");
    }
}

/// A loop of three blocks, and one of one.
const LOOPS: &str = r#"__asm__(".globl odd\n.type odd,@function\nodd: xor %eax,%eax\n"
    "1: test $1,%edi\n je 2f\n inc %rax\n2: dec %edi\n jne 1b\n ret\n.size odd,.-odd\n"
    ".globl copy\n.type copy,@function\ncopy: mov (%rdi),%rax\n dec %esi\n jne copy\n ret\n.size copy,.-copy\n");
    int main(void) { return 0; }"#;

#[test]
fn a_block_alone_notes_what_the_program_has_beside_it() {
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), LOOPS, &["-O1"], "program") else { return };
    let Some(_busy) = sandbox() else { return };
    let notes = |place: &str| {
        let found = json(&[&format!("{}:{place}", text(&program))]);
        let all: Vec<String> = serde_json::from_value(found["notes"].clone()).unwrap();
        all.join("\n")
    };
    let listed = block(["--list", &format!("{}:odd", text(&program)), "--format", "json"]).json();
    let start = |number: usize| listed["blocks"][number]["start"].as_str().unwrap().to_owned();
    let whole = format!("`tdtool block {}:@{}`", text(&program), start(1));
    for place in [start(2), "odd+2".to_owned()] {
        let said = notes(&place);
        assert!(said.contains(&whole), "{said}");
    }
    assert!(!notes("odd+0").contains(&whole), "it is in no loop");
    // A loop of one block is whole.
    assert!(!notes("copy").contains(":@0x"), "{}", notes("copy"));
}

#[test]
fn a_start_inside_an_instruction_is_reported() {
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), BLOCKS, &["-O1"], "program") else { return };
    let data = fs::read(&program).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let start = file.symbol_by_name("count").unwrap().address();
    let notes = |from: u64| {
        let place = format!("{}:{from:#x}..{:#x}", text(&program), start + 8);
        let document = tdtool(["deps", &place, "--format", "json"]).json();
        document["notes"].as_array().unwrap().iter().map(ToString::to_string).collect::<String>()
    };
    // xor eax,eax has two bytes, inc rax three: 48 ff c0.
    assert!(!notes(start + 2).contains("inside"));
    let inside = notes(start + 3);
    assert!(inside.contains("`inc rax`"), "{inside}");
}

#[test]
fn a_program_gives_its_functions_blocks_and_address_ranges() {
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), BLOCKS, &["-O1"], "program") else { return };
    let places = ["count+3", "count+9", "count@1", "tail@0", "cuont", "0..8"];
    let mut refused = places.map(|place| format!("{}:{place}", text(&program))).to_vec();
    refused.push(text(&program).to_owned());
    let shown = refused.iter().map(|place| shown::of(&["block", place], &folder));
    assert_shown!("places_that_a_program_has_not", shown.collect::<Vec<_>>().join("\n"));
    let Some(_busy) = sandbox() else { return };
    let data = fs::read(&program).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let start = file.symbol_by_name("count").unwrap().address();
    let at = |place: &str| json(&[&format!("{}:{place}", text(&program))]);
    assert_eq!(hex(&at("count")), "31c0");
    assert_eq!(hex(&at("count+1")), "48ffc04801c34883f8097cf4");
    let range = format!("{:#x}..{:x}", start + 2, start + 8);
    assert_eq!(hex(&at(&range)), "48ffc04801c3");
}

/// The program lies in a file system that only its process sees.
#[test]
fn a_program_of_another_mount_namespace_is_read_through_a_process_of_it() {
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), BLOCKS, &["-O1"], "program") else { return };
    let inside = folder.file("inside");
    fs::create_dir(&inside).unwrap();
    let script = format!(
        "mount -t tmpfs none {inside} && cp {} {inside}/own && echo mounted && exec cat",
        text(&program)
    );
    let mut unshare = run::program("unshare");
    unshare.args(["-m", "sh", "-c", &script]).stdin(Stdio::piped());
    let unshare = unshare.stdout(Stdio::piped()).stderr(Stdio::null()).start_limited();
    need!(unshare.is_ok(), "there is no unshare here");
    let mut process = unshare.unwrap();
    let mut said = String::new();
    let _ = BufReader::new(process.stdout.take().unwrap()).read_line(&mut said);
    need!(said == "mounted\n", "no file system can be mounted here");
    assert!(!fs::exists(format!("{inside}/own")).unwrap(), "it is seen here");
    let through = format!("/proc/{}/root{inside}/own", process.id());
    let listed = |file: &str| {
        let list = block(["--list", &format!("{file}:count"), "--format", "json"]);
        list.succeeded().json()["blocks"].clone()
    };
    assert_eq!(listed(&through), listed(text(&program)));
    let Some(_busy) = sandbox() else { return };
    let measured = json(&[&format!("{through}:count+1")]);
    assert_eq!(hex(&measured), "48ffc04801c34883f8097cf4", "{measured:#}");
}

#[inline(never)]
fn mixed(a: u64, b: u64) -> u64 {
    std::hint::black_box(a).wrapping_mul(b) ^ b
}

#[test]
fn this_tests_own_binary_is_a_program_like_any_other() {
    let Some(_busy) = sandbox() else { return };
    assert_eq!(mixed(3, 5), 10);
    let own = std::env::current_exe().unwrap();
    let data = fs::read(&own).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let ours = |name: &str| name.contains("block8programs5mixed");
    let symbol = file.symbols().find(|s| s.name().is_ok_and(ours)).unwrap();
    let document = json(&[&format!("{}:{}", text(&own), symbol.name().unwrap())]);
    let section = file.section_by_index(symbol.section_index().unwrap()).unwrap();
    let code = section.data_range(symbol.address(), symbol.size()).unwrap().unwrap();
    let code: String = code.iter().map(|b| format!("{b:02x}")).collect();
    assert!(!hex(&document).is_empty() && code.starts_with(hex(&document)));
}

/// What gcc calls a copy of a function with a constant argument.
const CLONE: &str = r#"
__asm__(".globl sum.constprop.0\n.type sum.constprop.0,@function\nsum.constprop.0: nop\n ret\n"
    ".size sum.constprop.0,.-sum.constprop.0\n");
int main(void) { return 0; }
"#;

#[test]
fn a_place_that_the_file_has_not_by_that_name_is_found_or_suggested() {
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), CLONE, &["-O1"], "program") else { return };
    let Some(stripped) = gcc(folder.path(), CLONE, &["-O1", "-s"], "stripped") else { return };
    let (program, stripped) = (text(&program), text(&stripped));
    let listed = block(["--list", &format!("{program}:sum")]);
    assert!(listed.stdout.contains("sum.constprop.0"), "{}{}", listed.stdout, listed.stderr);
    let at = format!("{stripped}:sum@0");
    let asked = [&["block", &at, "--", "x"][..], &["block", "--list", "4801d8"]];
    assert_shown!("programs_without_functions", shown::each(&asked, &folder));
}

/// Names mangled by g++ 12; `space::Class::method(int)`, `space::twice(int)` and `space::twice(double)` by c++filt.
const MANGLED: &str = r#"
#define FUNCTION(name) ".globl " name "\n.type " name ",@function\n" name ": inc %rax\n ret\n.size " name ",.-" name "\n"
__asm__(FUNCTION("_ZN5space5Class6methodEi") FUNCTION("_ZN5space5twiceEi") FUNCTION("_ZN5space5twiceEd"));
int main(void) { return 0; }
"#;

#[test]
fn functions_go_by_the_names_that_people_write() {
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), MANGLED, &["-O1"], "program") else { return };
    let place = |name: &str| format!("{}:{name}", text(&program));
    let list = |name: &str| block(["--list", &place(name)]);
    for name in ["_ZN5space5Class6methodEi", "space::Class::method", "space::Class::method(int)"] {
        let listed = list(name);
        assert!(listed.stdout.contains("space::Class::method(int)"), "{}", listed.stderr);
    }
    assert!(list("space::twice(double)").stdout.contains("space::twice(double)"));
    let names = ["space::twice", "method", "space::Class::metohd"];
    let shown = names.map(|name| shown::of(&["block", "--list", &place(name)], &folder));
    assert_shown!("functions_of_nearly_that_name", shown.join("\n"));
    let counted = tdtool(["count", "--functions", "method", "--", text(&program)]);
    assert!(counted.stderr.contains("`space::Class::method`"), "{}", counted.stderr);
    // Also where it was given by an address.
    let listed = block(["--list", "--format", "json", &place("space::Class::method")]).json();
    let start = listed["blocks"][0]["start"].as_str().unwrap().to_owned();
    let is_named = |said: &str| said.contains("space::Class::method(int)") && !said.contains("_ZN");
    for wrong in [format!("@{start}"), "space::Class::method+9".to_owned()] {
        let said = block([place(&wrong)]).stderr;
        assert!(is_named(&said), "{said}");
    }
    let Some(_busy) = sandbox() else { return };
    for given in ["space::Class::method(int)", &start] {
        let named = json(&[&place(given)]);
        assert_eq!(hex(&named), "48ffc0");
        assert!(is_named(named["block"]["name"].as_str().unwrap()), "{named}");
    }
}

#[test]
fn a_program_without_a_function_lists_its_functions_the_largest_first() {
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), BLOCKS, &["-O1"], "program") else { return };
    let program = text(&program);
    let listed = block(["--list", program, "--format", "json"]).json();
    assert_eq!(listed["schema"], "tdtool.functions/1");
    let all = listed["functions"].as_array().unwrap();
    let named = |name: &str| all.iter().any(|one| one["name"] == name);
    assert!(named("count") && named("main") && all.len() <= 50, "{listed}");
    assert!(all.windows(2).all(|two| two[0]["bytes"].as_u64() >= two[1]["bytes"].as_u64()));
    let lines = block(["--list", program]).stdout;
    assert!(lines.contains("functions") && lines.contains("count"), "{lines}");
}

/// As distributions have them: the program stripped, its symbols in a file that a link names.
#[test]
fn blocks_of_a_stripped_program_have_the_names_of_its_debug_file() {
    let folder = Folder::new();
    let source = "__attribute__((noinline)) long heavy(long n) { long s = 0; \
                  for (long i = 0; i < n; i++) s = s * 3 + i; return s; } \
                  int main(int c, char **v) { return (int)heavy(c); }";
    let Some(program) = gcc(folder.path(), source, &["-O1", "-g"], "prog") else { return };
    let debug = folder.path().join("prog.debug");
    let Some(_) = tool("objcopy", &["--only-keep-debug", text(&program), text(&debug)]) else {
        return;
    };
    tool("strip", &[text(&program)]);
    let place = format!("{}:heavy", text(&program));
    let bare = tdtool(["block", "--list", &place]);
    assert_eq!(bare.code(), Some(1), "{}", bare.stdout);
    let link = format!("--add-gnu-debuglink={}", text(&debug));
    tool("objcopy", &[&link, text(&program)]);
    let listed = tdtool(["block", "--list", &place]).succeeded();
    assert!(listed.stdout.contains("heavy"), "{}", listed.stdout);
    let functions = tdtool(["block", "--list", text(&program)]).succeeded();
    assert!(functions.stdout.contains("heavy"), "{}", functions.stdout);
    let deps = tdtool(["deps", &format!("{place}@0")]).succeeded();
    assert!(deps.stdout.contains("heavy@0"), "{}", deps.stdout);
    // What is not there names the file and the function.
    let beyond = tdtool(["block", &format!("{place}+99")]);
    assert!(beyond.stderr.contains(&format!("--list {place}")), "{}", beyond.stderr);
}
