//! Trips of the simplest loop, one block: what the counts fix is given, and else their bounds.

use super::refused::Endless;
use crate::support::files::{Folder, text};
use crate::support::quiet::busy;
use crate::support::run::{Ran, tdtool};
use crate::support::tools::gcc;
use serde_json::Value;

/// Loops of one block that may be skipped: their exit is that of the branch before them, so that the counts of the blocks
/// leave open how often they were. `once` is called once, the others ten times.
const SKIPPED: &str = r#"
#define LOOP(name) \
    __asm__(".text\n.globl " #name "\n.type " #name ",@function\n" #name ":\n" \
            "sub $1,%rdi\nje 1f\n2: sub $1,%rdi\njne 2b\n1: ret\n.size " #name ",.-" #name)
LOOP(once);
LOOP(often);
LOOP(never);
LOOP(seldom);
void once(long), often(long), never(long), seldom(long);
int main(void) {
    once(1001);
    for (int i = 0; i < 10; i++) often(101), never(1), seldom(i ? 1 : 4);
    return 0;
}
"#;

/// Twenty million iterations for each of endless entries.
const LONG: &str = r#"
__attribute__((noipa)) long part(long n) {
    long s = 0;
    for (long i = 0; i < n; i++) { s += i; __asm__ volatile("" : "+r"(s)); }
    return s;
}
int main(int count, char **arguments) {
    while (part(20000000) != 1);
    return 5;
}
"#;

/// The only loop of a function; nothing, with a message, where tracing is not permitted.
fn the_loop(ran: Ran) -> Option<Value> {
    if ran.stderr.contains("ptrace") || ran.stderr.contains("cannot trace") {
        eprintln!("skipped: {}", ran.stderr);
        return None;
    }
    let document = ran.succeeded().json();
    Some(document["loops"][0].clone())
}

/// By hand: the branch before the loop takes one of 1001 and of 101.
#[test]
fn a_loop_that_may_be_skipped_has_trips_if_it_was_entered_once_and_else_how_many_at_least() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), SKIPPED, &["-O1"], "program") else { return };
    let of = |function: &str| {
        let asked = ["count", "--functions", function, "--format", "json", "--", text(&program)];
        the_loop(tdtool(asked))
    };
    let (Some(once), Some(often)) = (of("once"), of("often")) else { return };
    let (Some(never), Some(seldom)) = (of("never"), of("seldom")) else { return };
    assert_eq!((&never["entries"], &never["iterations"]), (&0.into(), &0.into()), "{never}");
    let why = seldom["reason"].as_str().expect("a reason");
    assert!(why.contains("at most 3 entries"), "{seldom}");
    assert_eq!((&once["entries"], &once["iterations"]), (&1.into(), &1000.into()), "{once}");
    assert_eq!((&once["trips"]["mean"], &once["reason"]), (&1000.0.into(), &Value::Null), "{once}");
    assert_eq!((&often["entries"], &often["iterations"]), (&Value::Null, &1000.into()), "{often}");
    let why = often["reason"].as_str().expect("a reason");
    assert!(why.contains("at most 10 entries"), "{often}");
}

/// A window cuts one execution of the thread at each end: the true number is within the bounds.
#[test]
fn few_entries_in_a_window_bound_the_trips() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), LONG, &["-O1"], "program") else { return };
    let running = Endless::start(&program);
    let asked = ["count", "--functions", "part", "--seconds", "0.5", "--format", "json", "-p"];
    let Some(found) = the_loop(tdtool(asked.iter().copied().chain([&*running.pid()]))) else {
        return;
    };
    need!(found["iterations"].as_u64() > Some(0), "it did not run in the window");
    let why = found["reason"].as_str().expect("bounds");
    let numbers: Vec<f64> = why.split([' ', ':']).filter_map(|word| word.parse().ok()).collect();
    assert!(numbers[0] <= 2e7, "{why}");
    assert!(numbers.get(1).map_or(why.contains("or more"), |most| *most >= 2e7), "{why}");
}
