//! The output of `tdtool deps`: document, text and graph.

use super::{deps, deps_of_emr, json};
use crate::support::files::Folder;
use crate::support::processor::cpuid_dump;
use crate::support::shown;
use crate::support::tools::tool;
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn the_document_names_instructions_by_address_and_registers_can_be_given() {
    let folder = Folder::new();
    // With rsi = rdi - 8 the load reads what the iteration before stored.
    let file = folder.write("registers", "rdi=0x10008\nrsi=0x10000\n");
    // mov rax,[rsi]; mov [rdi],rax; add rsi,8; add rdi,8
    let hex = "488b06 488907 4883c608 4883c708";
    let json = |args: &[&str]| {
        let all = [&[hex, "--format", "json", "--uarch", "zen3"], args].concat();
        let document = deps(&all).json();
        assert_eq!(document["schema"], "tdtool.deps/1");
        assert_eq!(document["instructions"][1]["address"], "0x3");
        document
    };
    let carried = |document: &Value| {
        let all = document["dependencies"].as_array().unwrap();
        all.iter().filter(|d| d["kind"] == "memory").count()
    };
    let unseeded = json(&[]);
    assert_eq!(carried(&unseeded), 0);
    assert_eq!(unseeded["may_alias"][0]["stores"][0], "0x3");
    let seeded = json(&["--registers", &file]);
    assert_eq!(carried(&seeded), 1);
    assert_eq!(seeded["may_alias"].as_array().unwrap().len(), 0, "the addresses are known");
}

#[test]
fn text_and_graph_show_what_is_known() {
    let folder = Folder::new();
    let zen3 = cpuid_dump(&folder, "Milan");
    let of = |words: &[&str]| shown::of(&[&["deps", "--cpuid", &zen3], words].concat(), &folder);
    // add [rdi],eax; imul rax,rbx, add rcx,rax, add rax,rdx: latencies of Zen 3 (uops.info): imul 3, add 1.
    let graph = of(&["480fafc3 4801c1 4801d0", "--format", "dot"]);
    assert_shown!("deps_graph", graph);
    let ascii = of(&["0107", "--ascii"]);
    assert!(ascii.is_ascii(), "{ascii}");
    // add rax,rbx: one chain; push rax, pop rcx: rsp is back after each iteration; mov [rdi],rax, mov rcx,[rsi]: whether
    // they alias is unknown; and fninit.
    let others = ["4801d8", "50 59", "488907 488b0e", "488907 488b0e dbe3"].map(|hex| of(&[hex]));
    assert_shown!("deps", [&[ascii][..], &others].concat().join("\n"));
}

#[test]
fn the_document_has_the_keys_that_the_manual_lists() {
    // add [rdi],eax; mov rcx,[rsi]; rep movsb
    let document = json(&["0107 488b0e f3a4", "--all"]);
    let keys = |value: &Value| -> Vec<String> {
        let mut keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys
    };
    assert_eq!(document["schema"], "tdtool.deps/1");
    assert_eq!(keys(&document["instructions"][0]), ["address", "text"]);
    for dependency in document["dependencies"].as_array().unwrap() {
        let expected = [
            "delta", "indices", "kind", "latency", "order", "overlap", "reader", "through",
            "writer",
        ];
        assert_eq!(keys(dependency), expected);
        if !dependency["latency"].is_null() {
            assert_eq!(keys(&dependency["latency"]), ["high", "low", "source"]);
        }
        assert!(["register", "flag", "memory"].contains(&dependency["kind"].as_str().unwrap()));
        assert!(["raw", "war", "waw"].contains(&dependency["order"].as_str().unwrap()));
    }
    let orders: BTreeSet<&str> = (document["dependencies"].as_array().unwrap().iter())
        .filter_map(|d| d["order"].as_str())
        .collect();
    assert_eq!(orders, BTreeSet::from(["raw", "war", "waw"]));
    let expected = ["cycles", "high", "iterations", "low", "middle", "path"];
    assert_eq!(keys(&document["recurrences"][0]), expected);
    let expected = [
        "address",
        "delta",
        "forwarding",
        "high",
        "index",
        "kind",
        "low",
        "source",
        "text",
        "through",
        "writer",
    ];
    assert_eq!(keys(&document["recurrences"][0]["path"][0]), expected);
    let expected = ["others", "others_from", "stack", "stores", "stores_from"];
    assert_eq!(keys(&document["may_alias"][0]), expected);
    assert_eq!(keys(&document["unmodelled"][0]), ["address", "reason", "text"]);
}

#[test]
fn vector_registers_have_the_names_that_the_code_gives_them() {
    // vaddpd ymm1,ymm0,[rsp]; vmulpd ymm0,ymm1,ymm0; addsd xmm3,xmm4
    let document = json(&["c5fd580c24 c5f559c0 f20f58dc"]);
    let through: BTreeSet<&str> = document["dependencies"]
        .as_array()
        .expect("dependencies")
        .iter()
        .map(|one| one["through"].as_str().expect("a name"))
        .collect();
    assert_eq!(through, BTreeSet::from(["xmm3", "ymm0", "ymm1"]));
}

/// Every node that an edge names is declared, and quotes and braces are closed; where Graphviz is
/// installed it takes it.
#[test]
fn the_graph_is_one() {
    let output = deps_of_emr(&["--asm-file", "/dev/null", "--format", "dot"]);
    assert!(!output.status.success(), "an empty file is no block");
    // add [rdi],eax; add rdi,4; cmp eax,5; cmovne ecx,edx
    let graph = deps_of_emr(&["0107 4883c704 83f805 0f45ca", "--all", "--format", "dot"]).stdout;
    let mut nodes = BTreeSet::new();
    let mut edges = 0;
    let mut lines = graph.lines();
    assert_eq!(lines.next(), Some("digraph dependencies {"));
    assert!(graph.ends_with("}\n"));
    for line in lines.filter(|line| line.starts_with("  i")) {
        assert!(line.ends_with("];"), "{line}");
        assert!(line.matches('"').count() % 2 == 0, "{line}");
        let name = |text: &str| text.split(' ').next().unwrap().to_owned();
        match line.trim_start().split_once(" -> ") {
            Some((from, to)) => {
                assert!(nodes.contains(&name(from)) && nodes.contains(&name(to)), "{line}");
                edges += 1;
            }
            None => assert!(nodes.insert(name(line.trim_start()))),
        }
    }
    assert!(nodes.len() == 4 && edges > 6, "{graph}");
    let folder = Folder::new();
    let file = folder.write("graph.dot", graph);
    if let Some(drawn) = tool("dot", &["-Tsvg", &file]) {
        assert!(drawn.contains("<svg"));
    }
}

/// Prose fits 80 columns; the code with its arrows takes what it needs.
#[test]
fn text_fits_a_terminal_and_is_plain_where_asked_for() {
    // mov rax,[rsi]; imul rax,rax; mov [rsp+8],eax; mov [rsp+12],edx; mov r8,[rsp+8];
    // vgatherdpd ymm3,[rdx+xmm4*8],ymm5; add rsi,r8; rep movsb
    let hex = "488b06 480fafc0 89442408 8954240c 4c8b442408 c4e2d5921ce2 4c01c6 f3a4";
    for args in [&[hex][..], &[hex, "--all", "--arrows"]] {
        let plain = deps_of_emr(&[args, &["--ascii"]].concat()).stdout;
        assert!(plain.is_ascii(), "{plain}");
        let longest = plain.lines().max_by_key(|line| line.len()).expect("lines");
        assert!(longest.len() <= 80, "{} columns: {longest}", longest.len());
        let drawn = deps_of_emr(args).stdout;
        assert!(drawn.contains('►') && !drawn.contains('\u{1b}'), "{drawn}");
        assert_eq!(drawn.lines().count(), plain.lines().count());
    }
}

/// The bound's headline is its low end, in every format (a range: [0, 1] cycles of forwarding on Zen 3 in
/// a loop with few pairs, measured; and 1 of the addition).
#[test]
fn the_recurrence_is_the_lower_bound() {
    // mov rdx,[r15+rcx*8]; add rcx,1; add rdx,rbx; mov [r15+rcx*8],rdx
    let hex = "498b14cf 4883c101 4801da 498914cf";
    let document = deps(&[hex, "--uarch", "zen3", "--format", "json"]).json();
    let first = &document["recurrences"][0];
    assert_eq!(first["cycles"], first["low"]);
    assert!(first["low"].as_f64() <= first["middle"].as_f64());
    assert_eq!(first["low"], 1.0);
    let high = document["recurrences"].as_array().unwrap().iter();
    assert!(high.into_iter().any(|r| r["high"].as_f64() > Some(1.0)), "{document}");
}

/// Latencies of Zen 3 (uops.info): imul 3, add 1.
#[test]
fn dependencies_have_latencies() {
    // imul rax,rbx; add rcx,rax; add rax,rdx
    let block = ["480fafc3 4801c1 4801d0", "--uarch", "zen3", "--format", "json"];
    let document = deps(&block).json();
    let latency = |writer: usize, reader: usize| {
        let all = document["dependencies"].as_array().unwrap();
        let found = all
            .iter()
            .find(|d| d["indices"] == serde_json::json!([writer, reader]) && d["through"] == "rax");
        found.map(|d| (d["latency"]["low"].as_f64(), d["latency"]["high"].as_f64()))
    };
    assert_eq!(latency(0, 2), Some((Some(1.0), Some(1.0))));
    assert_eq!(latency(2, 0), Some((Some(3.0), Some(3.0))));
}

/// By hand: what the unknown registers do not decide.
#[test]
fn every_pair_that_is_not_decided_is_listed() {
    let pairs = |text: &str| {
        let document = json(&["--asm", text]);
        let pair = |p: &Value| {
            let list = |key: &str| {
                let all = p[key].as_array().unwrap().iter();
                all.map(|a| a.as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
            };
            format!("{} | {}", list("stores"), list("others"))
        };
        document["may_alias"].as_array().unwrap().iter().map(pair).collect::<Vec<_>>()
    };
    // The store to [rsi] may also reach the load of [rdi] in the next iteration.
    assert_eq!(pairs("mov rax,[rdi]; mov [rdi],rcx; mov [rsi],rax"), ["0x3 | 0x6", "0x6 | 0x0"]);
    assert_eq!(pairs("mov [rdi+rsi*4],rcx; mov rax,[rdi+rsi*8]"), ["0x0 | 0x4"]);
    // Constant distances are decided, also from iteration to iteration.
    assert!(pairs("mov [rdi+rsi*8],rcx; mov rax,[rdi+rsi*8-8]; inc rsi").is_empty());
    // Not if the pointer advances by an unknown amount: it may be 0.
    assert_eq!(pairs("mov rax,[rdi+8]; add rdi,rdx; mov [rdi],rcx"), ["0x7 | 0x0", "0x7 | 0x7"]);
}

/// By hand: `loop` counts rcx down, and a copy of a known length stores what a later load reads.
#[test]
fn loop_counts_and_repeated_copies_of_known_length_are_followed() {
    // With rcx = 3 the loop ends after three iterations: the load four iterations on never happens.
    let seeded = |rcx: &str| {
        // add r8,8; mov [r8],rax; mov rbx,[r8-32]; loop
        let hex = "4983c008 498900 498b58e0 e2f3";
        let document = json(&[hex, "--init", rcx, "--init", "r8=0x10000"]);
        let all = document["dependencies"].as_array().unwrap().clone();
        all.iter().filter(|d| d["kind"] == "memory").count()
    };
    assert_eq!((seeded("rcx=3"), seeded("rcx=100")), (0, 1));
    let through = |text: &str| {
        let document = json(&["--asm", text]);
        let all = document["dependencies"].as_array().unwrap();
        let memory = all.iter().filter(|d| d["kind"] == "memory" && d["delta"] == 0);
        let memory: Vec<Value> = memory.map(|d| d["indices"].clone()).collect();
        (memory, document["unmodelled"].as_array().unwrap().len())
    };
    // 32 bytes from rsi to rdi, then a load of the last 8.
    let copy = "mov ecx,4; mov [rsi],rax; rep movsq; mov rbx,[rdi-8]";
    let expected = vec![serde_json::json!([1, 2]), serde_json::json!([2, 3])];
    assert_eq!(through(copy), (expected, 0));
    let fill = "mov ecx,4; rep stosq; mov rbx,[rdi-8]";
    assert_eq!(through(fill), (vec![serde_json::json!([1, 2])], 0));
    // Of an unknown length.
    assert_eq!(through("rep stosq; mov rbx,[rdi-8]"), (Vec::new(), 1));
}
