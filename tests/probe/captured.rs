//! Registers, memory, trips and paths at an entry equal what the program has by its own account.

use super::programs::{CALLER, LOOP, MAIN, program};
use super::{BOTH, captured, line, name, region, register, request, symbol, word};
use crate::support::files::Folder;
use crate::support::tools::gcc;
use probe::capture::{Afterwards, Breakpoints, End, Entry, Limits, Place, Request, Snapshot};
use std::time::Duration;

/// Trips of call `c`, and entries of the loop's block before it.
fn trips(call: u64) -> (u64, u64) {
    (10 + call, (0..call).map(|c| 10 + c).sum())
}

/// What [`super::programs`] defines, at iteration `i` of call `c`, of which `told` is the account.
fn check(snapshot: &Snapshot, told: &[u64], call: u64, iteration: u64) {
    let at = |i: u64| 1000 * call + 3 * i;
    let sum = |i: u64| (0..=i).map(at).filter(|a| a % 2 == 1).sum::<u64>();
    let [a, n, b] = *told else { panic!("{told:?}") };
    assert_eq!(snapshot.entry, trips(call).1 + iteration + 1);
    let registers = ["rdi", "rsi", "r8", "rcx"].map(|name| register(snapshot, name));
    assert_eq!(registers, [a, n, b, iteration]);
    let before = if iteration == 0 { 0 } else { sum(iteration - 1) };
    assert_eq!(register(snapshot, "rax"), before);
    let seventh = [at(0), at(1)].map(u64::to_le_bytes).concat();
    assert_eq!(snapshot.vectors.zmm[7][..16], seventh);
    // MXCSR and the x87 control word as the ABI has them at start (System V ABI, 3.4.1).
    assert_eq!((snapshot.vectors.mxcsr & 0xffc0, snapshot.vectors.x87_control), (0x1f80, 0x37f));
    // The pages are as at the entry: the iterations to come have stored nothing yet.
    for i in 0..n {
        assert_eq!(word(snapshot, a + 8 * i), Some(at(i)));
        let stored = if i < iteration { sum(i) } else { (-1 - call as i64) as u64 };
        assert_eq!(word(snapshot, b + 8 * i), Some(stored), "{i} of {n} in call {call}");
    }
    assert_eq!(snapshot.pages.0.len(), 2, "no other page is accessed");
    assert!(snapshot.walk.missing.is_empty());
    assert_eq!((snapshot.walk.trips, snapshot.walk.end), (n - iteration, End::Left));
    assert_eq!(snapshot.walk.sequence.len() as u64, n - iteration);
    // Numbers are odd and even by turns; the last iteration leaves the loop.
    let taken = |number: u32| snapshot.walk.paths[number as usize].iter().map(|b| b.taken);
    for (i, number) in (iteration..).zip(&snapshot.walk.sequence) {
        assert!(taken(*number).eq([at(i) % 2 == 0, i + 1 < n]), "{i}");
    }
}

/// The capture of entry `entry`, and the file of the program's account.
fn at(request: Request, entry: u64) -> Option<Snapshot> {
    Some(captured(&Request { entry: Entry::Number(entry), ..request })?.unwrap())
}

#[test]
fn registers_memory_and_path_are_those_of_the_program() {
    for options in [&["-pie", "-fPIE"][..], &["-no-pie"], &["-static"]] {
        let folder = Folder::new();
        let Some(program) = program(folder.path(), options) else { return };
        let account = folder.file("account");
        for breakpoints in BOTH {
            for (call, iteration) in [(0, 0), (3, 0), (3, 5), (7, 16)] {
                let request = request(&program, &[name(&program), &account, "9"]);
                let entry = trips(call).1 + iteration + 1;
                let Some(snapshot) = at(Request { breakpoints, ..request }, entry) else { return };
                check(&snapshot, &line(&account, call as usize), call, iteration);
                assert_eq!(snapshot.from_outside, (call, iteration) == (0, 0));
                let branches = &snapshot.walk.paths[0];
                let range = symbol(&program, "loop_start")..symbol(&program, "loop_end");
                assert!(branches.iter().all(|b| range.contains(&b.at)), "{branches:x?}");
            }
        }
    }
}

#[test]
fn by_default_the_start_of_a_loop_near_the_thousandth_entry_is_captured() {
    let folder = Folder::new();
    let Some(program) = program(folder.path(), &[]) else { return };
    let account = folder.file("account");
    let of = |calls: &str| request(&program, &[name(&program), &account, calls]);
    // 38 calls have 1083 entries, 35 have 945.
    let Some(snapshot) = captured(&of("60")) else { return };
    let snapshot = snapshot.unwrap();
    assert!(snapshot.from_outside && snapshot.entry >= 1000, "{}", snapshot.entry);
    let call = (0..60).find(|c| trips(*c).1 + 1 == snapshot.entry).unwrap();
    check(&snapshot, &line(&account, call as usize), call, 0);
    // A program with fewer entries: the last of the 1st, 10th and 100th. It has ended.
    let Some(snapshot) = captured(&of("10")) else { return };
    let entry = snapshot.unwrap().entry;
    assert!((100..145).contains(&entry), "{entry}");
    assert!(folder.read("account").ends_with("done\n"));
}

#[test]
fn a_program_that_continues_runs_as_it_is() {
    let folder = Folder::new();
    let Some(program) = program(folder.path(), &[]) else { return };
    let account = folder.file("account");
    for breakpoints in BOTH {
        let request = request(&program, &[name(&program), &account, "9"]);
        let request = Request { breakpoints, afterwards: Afterwards::Continue, ..request };
        if at(request, 12).is_none() {
            return;
        }
        assert_eq!(folder.read("account").lines().count(), 10);
        assert!(folder.read("account").ends_with("done\n"), "it was waited for");
    }
}

#[test]
fn a_function_of_a_shared_library_is_captured_wherever_it_is_mapped() {
    let folder = Folder::new();
    let of =
        |source: &str, options: &[&str], output: &str| gcc(folder.path(), source, options, output);
    let Some(library) = of(LOOP, &["-shared", "-fPIC"], "libsums.so") else { return };
    let own = name(folder.path());
    let path = format!("-Wl,-rpath,{own}");
    let options = ["-O1", "-L", own, "-Wl,--no-as-needed", "-lsums", &path];
    let Some(linked) = of(&[CALLER, MAIN].concat(), &options, "linked") else { return };
    let loading = [
        "#define sums (*loaded)\n",
        CALLER,
        r#"
#include <dlfcn.h>
long (*loaded)(long *, long, long *);
int main(int count, char **arguments) {
    FILE *out = fopen(arguments[1], "w");
    usleep(20000);
    loaded = dlsym(dlopen(arguments[3], RTLD_NOW), "sums");
    for (long c = 0; c < atol(arguments[2]); c++) call(out, c);
    return 0;
}"#,
    ]
    .concat();
    let Some(loading) = of(&loading, &["-O1", "-ldl"], "loading") else { return };
    let account = folder.file("account");
    for program in [&linked, &loading] {
        for breakpoints in BOTH {
            let command = [name(program), &account, "9", name(&library)];
            let request = Request { breakpoints, ..request(&library, &command) };
            let Some(snapshot) = at(request, trips(4).1 + 3) else { return };
            check(&snapshot, &line(&account, 4), 4, 2);
        }
    }
}

#[test]
fn a_program_that_another_starts_is_captured() {
    let folder = Folder::new();
    let Some(program) = program(folder.path(), &[]) else { return };
    let account = folder.file("account");
    let shell = format!("true; {} {account} 9; true", name(&program));
    for breakpoints in BOTH {
        for command in [&["env", name(&program), &account, "9"][..], &["sh", "-c", &shell]] {
            let request = Request { breakpoints, ..request(&program, command) };
            let Some(snapshot) = at(request, trips(4).1 + 3) else { return };
            check(&snapshot, &line(&account, 4), 4, 2);
        }
    }
}

#[test]
fn a_place_may_be_an_offset_in_the_file() {
    let folder = Folder::new();
    let Some(program) = program(folder.path(), &["-no-pie"]) else { return };
    let account = folder.file("account");
    let request = request(&program, &[name(&program), &account, "9"]);
    // Segments of an executable are mapped at the same offset within a page as in the file.
    let data = std::fs::read(&program).unwrap();
    let code = region(&request);
    let start = [0x48, 0x8b, 0x14, 0xcf, 0xf6, 0xc2, 0x01];
    let offset = data.windows(start.len()).position(|bytes| bytes == start).unwrap() as u64;
    assert_eq!(offset % 4096, code.start % 4096);
    let Some(snapshot) = at(Request { place: Place::Offset(offset), ..request }, 1) else { return };
    assert_eq!(snapshot.address, code.start);
    check(&snapshot, &line(&account, 0), 0, 0);
}

#[test]
fn more_trips_than_are_stepped_are_counted() {
    let folder = Folder::new();
    let Some(program) = program(folder.path(), &[]) else { return };
    let account = folder.file("account");
    let request = request(&program, &[name(&program), &account, "9"]);
    let limits = Limits { iterations: 3, ..request.limits };
    let entry = trips(5).1 + 2;
    let Some(snapshot) = at(Request { limits, ..request.clone() }, entry) else { return };
    let walk = &snapshot.walk;
    assert_eq!((walk.trips, walk.end, walk.sequence.len()), (14, End::Left, 3));
    // With int3 every entry costs a step and two stops of all threads: they are not counted.
    let breakpoints = Breakpoints::Int3;
    let Some(snapshot) = at(Request { limits, breakpoints, ..request }, entry) else { return };
    assert_eq!((snapshot.walk.trips, snapshot.walk.end), (4, End::Limit));
}

#[test]
fn trips_are_counted_where_stepping_ends_within_an_iteration() {
    let folder = Folder::new();
    let Some(program) = program(folder.path(), &[]) else { return };
    let account = folder.file("account");
    let request = request(&program, &[name(&program), &account, "9"]);
    // An iteration has 7 or 8 instructions: the 20th is in the middle of the third.
    let limits = Limits { steps: 20, ..request.limits };
    let entry = trips(5).1 + 1;
    let Some(snapshot) = at(Request { limits, ..request }, entry) else { return };
    let walk = &snapshot.walk;
    assert_eq!((walk.trips, walk.end, walk.sequence.len()), (15, End::Left, 3));
    // Sums in rax, the counter in rcx.
    let left = walk.left_with.unwrap().0;
    let sum: u64 = (0..15).map(|i| 5000 + 3 * i).filter(|a| a % 2 == 1).sum();
    assert_eq!((left[0], left[1]), (sum, 15));
}

#[test]
fn several_executions_of_one_run_are_captured() {
    let folder = Folder::new();
    let Some(program) = program(folder.path(), &[]) else { return };
    let account = folder.file("account");
    let request = request(&program, &[name(&program), &account, "200"]);
    let Some(first) = captured(&Request { executions: 4, ..request }) else { return };
    let first = first.unwrap();
    let all: Vec<&Snapshot> = [&first].into_iter().chain(&first.others).collect();
    assert_eq!(all.len(), 4);
    for (number, snapshot) in all.iter().enumerate() {
        assert!(snapshot.from_outside && snapshot.entry >= 1000, "{}", snapshot.entry);
        let call = (0..200).find(|c| trips(*c).1 + 1 == snapshot.entry).unwrap();
        check(snapshot, &line(&account, call as usize), call, 0);
        let later = all[number + 1..].iter().all(|other| other.entry > snapshot.entry * 3 / 2);
        assert!(later, "{number}");
    }
}

/// As [`LOOP`], but its iterations may also leave at four other places.
const FIVE_EXITS: &str = r#"
__asm__(".globl sums\n.type sums,@function\nsums: xor %ecx,%ecx\n"
    ".globl loop_start\nloop_start: mov (%rdi,%rcx,8),%rdx\n cmp $-1,%rdx\n je 1f\n cmp $-2,%rdx\n je 2f\n"
    " cmp $-3,%rdx\n je 3f\n cmp $-4,%rdx\n je 4f\n inc %rcx\n cmp %rsi,%rcx\n jl loop_start\n"
    ".globl loop_end\nloop_end: ret\n1: nop\n2: nop\n3: nop\n4: ret\n.size sums,.-sums\n");
"#;

#[test]
fn trips_of_a_loop_with_many_exits_are_counted() {
    let folder = Folder::new();
    let source = [CALLER, FIVE_EXITS, MAIN].concat();
    let Some(program) = gcc(folder.path(), &source, &["-O1"], "program") else { return };
    let account = folder.file("account");
    let request = request(&program, &[name(&program), &account, "9"]);
    let limits = Limits { iterations: 3, ..request.limits };
    let Some(snapshot) = at(Request { limits, ..request }, trips(5).1 + 1) else { return };
    assert_eq!((snapshot.walk.trips, snapshot.walk.end), (15, End::Left));
    // The breakpoints at its exits are gone, and no page of code was captured.
    assert_eq!(snapshot.walk.left_with.map(|r| r.0[1]), Some(15));
}

/// Calls a function in each 64th of a thousand million iterations.
const RARE_CALLS: &str = r#"
long sums(long first, long count);
__asm__("g: ret\n.globl sums\n.type sums,@function\nsums: xor %ecx,%ecx\n xor %eax,%eax\n"
    ".globl loop_start\nloop_start: add $3,%rax\n inc %rcx\n test $63,%ecx\n jne 2f\n call g\n2: cmp %rsi,%rcx\n"
    " jl loop_start\n.globl loop_end\nloop_end: ret\n.size sums,.-sums\n");
int main(void) { return sums(0, 1000000000) == 1; }
"#;

#[test]
fn later_iterations_of_a_loop_without_an_end_in_sight_are_captured_up_to_a_call() {
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), RARE_CALLS, &["-O1"], "program") else { return };
    let request = request(&program, &[name(&program)]);
    let limits = Limits { stepping: Duration::from_millis(300), ..request.limits };
    let Some(first) = captured(&Request { executions: 3, limits, ..request }) else { return };
    let first = first.unwrap();
    for snapshot in [&first].into_iter().chain(&first.others) {
        assert!(!snapshot.from_outside && snapshot.walk.end == End::Limit);
        let (count, before) = (register(snapshot, "rcx"), snapshot.walk.before_call.unwrap());
        assert_eq!(before.iterations, 63 - count % 64);
        assert!(before.iterations >= 4, "{before:?}");
        // rax and rcx then
        let reached = count + before.iterations;
        assert_eq!(before.registers.0[..2], [3 * reached, reached]);
    }
}
