//! `tdtool report --measure -- CMD`: loops around hot blocks with the values of a further run.

use super::{compiled, report};
use crate::support::files::Folder;
use crate::support::quiet::busy;

/// Two hot loops: `counted` of three blocks and a hundred trips, `calling` with a call in it.
const PROGRAM: &str = r#"
#include <stdlib.h>
__asm__(".globl counted\n.type counted,@function\ncounted: xor %eax,%eax\n xor %ecx,%ecx\n"
    "1: mov (%rdi,%rcx,8),%rdx\n test $1,%dl\n jz 2f\n imul %rdx,%rax\n"
    "2: add %rdx,%rax\n inc %rcx\n cmp $100,%rcx\n jne 1b\n ret\n.size counted,.-counted\n"
    ".globl calling\n.type calling,@function\ncalling: mov $100,%ecx\n"
    "3: call 4f\n dec %ecx\n jnz 3b\n ret\n4: imul %rax,%rax\n imul %rax,%rax\n imul %rax,%rax\n ret\n"
    ".size calling,.-calling\n");
long counted(long *a);
long calling(void);
int main(int count, char **arguments) {
    static long a[100];
    long sum = 0, rounds = atol(arguments[1]);
    for (long i = 0; i < 100; i++) a[i] = i * i;
    for (long i = 0; i < rounds; i++) sum += counted(a) + calling();
    return sum == 1;
}
"#;

#[test]
fn loops_around_hot_blocks_run_with_the_values_of_a_further_run() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = compiled(&folder, PROGRAM, &[]) else { return };
    let options = ["--measure", "--blocks", "9", "--format", "json", "--", &program, "200000"];
    let measured = report(&options).succeeded();
    let document = measured.json();
    let blocks = document["blocks"].as_array().cloned().unwrap_or_default();
    let of =
        |function: &str| blocks.iter().find(|b| b["function"] == function && b["loop_depth"] == 1);
    let (Some(counted), Some(calling)) = (of("counted"), of("calling")) else {
        eprintln!("skipped: no samples: {}", measured.stderr);
        return;
    };
    let (found, refused) = (&counted["with_values"], &calling["with_values"]);
    // What is done without values is done all the same.
    assert!(counted["measured"]["status"].is_string() && calling["measured"]["status"].is_string());
    assert!(refused["reason"].as_str().is_some_and(|why| why.contains("calls")), "{refused}");
    assert!(refused["cycles"].is_null());
    let reason = found["reason"].as_str().unwrap_or_default();
    if reason.contains("permitted") || counted["measured"]["status"] == "failed" {
        eprintln!("skipped: {reason}");
        return;
    }
    assert_eq!((&found["blocks"], &found["iterations"]), (&3.into(), &100.into()), "{found}");
}
