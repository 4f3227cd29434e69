//! A live process of which so much is counted that its trampolines are mapped at a first stop and written while it
//! runs.

use super::attached::{Live, counted};
use crate::support::files::Folder;
use crate::support::quiet::busy;
use probe::count::Wanted;
use probe::facts::functions;
use std::collections::BTreeSet;
use std::time::Duration;

pub const FUNCTIONS: usize = 2000;
/// More pages with trampolines than are written in one stop.
const MANY: usize = 200;

/// Two threads that call all functions by turns, and signals every millisecond. A jump over a `not` of three bytes
/// ends in the instruction after it, so that its number decides in which 16 MiB the trampoline lies.
pub fn source() -> String {
    let function = |n: usize| {
        format!(
            "__asm__(\".text\\n.globl f{n}\\n.type f{n},@function\\nf{n}: lea {n}(%rdi),%rax\\nadd $0x12345,%rax\\n\"\n\
             \"test $1,%al\\nje 1f\\nnot %rax\\n1: mov $0x1000{low:02x},%ecx\\nadd $0x54321,%rax\\nxor %rcx,%rax\\n\"\n\
             \"test $2,%al\\nje 2f\\nnot %rax\\n2: mov $0x1000{low:02x},%edx\\nadd $0x23456,%rax\\nadd %rdx,%rax\\n\"\n\
             \"ret\\n.size f{n},.-f{n}\\n\");\nunsigned long f{n}(unsigned long);\n",
            low = n % 256
        )
    };
    let all: String = (0..FUNCTIONS).map(function).collect();
    let names: Vec<String> = (0..FUNCTIONS).map(|n| format!("f{n}")).collect();
    format!(
        "{all}static unsigned long (*const all[])(unsigned long) = {{ {} }};\n{}",
        names.join(", "),
        r#"
void on(int number) { ticks++; }
static unsigned long chain(unsigned long x) {
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) x = all[i](x);
    return x;
}
static void *work(void *seed) {
    unsigned long first = chain((unsigned long)seed);
    while (!over) {
        if (chain((unsigned long)seed) != first) wrong++;
        rounds++;
    }
    return 0;
}
int main(void) {
    pthread_t thread;
    struct itimerval often = {{0, 1000}, {0, 1000}};
    struct sigaction action = {.sa_handler = on, .sa_flags = SA_RESTART};
    signal(SIGTERM, end);
    sigaction(SIGALRM, &action, 0);
    setitimer(ITIMER_REAL, &often, 0);
    pthread_create(&thread, 0, work, (void *)5);
    work((void *)7);
    pthread_join(thread, 0);
    return done();
}
"#
    )
}

/// All of those functions.
pub fn wanted(live: &Live) -> Vec<Wanted> {
    let all = functions(&live.file).unwrap();
    let is_one = |name: &str| name.strip_prefix('f').is_some_and(|n| n.parse::<u32>().is_ok());
    let own = all.into_iter().filter(|named| named.name.as_deref().is_some_and(is_one));
    own.map(|named| Wanted { path: live.file.clone(), range: named.range }).collect()
}

#[test]
fn much_is_counted_of_a_process_that_goes_on() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(live) = Live::start(&folder, &source(), &["-O1"]) else { return };
    let wanted = wanted(&live);
    assert_eq!(wanted.len(), FUNCTIONS);
    for round in 0..3 {
        let Some(counts) = counted(live.pid(), &wanted, Duration::from_millis(200)) else { return };
        let pages: BTreeSet<u64> =
            counts.trampolines[0].all().map(|(range, _)| range.start >> 12).collect();
        assert!(pages.len() > MANY, "{}", pages.len());
        let entries = counts
            .functions
            .iter()
            .filter_map(|found| found.as_ref().ok()?.blocks.first()?.count.as_ref().ok().copied());
        let entries: Vec<u64> = entries.collect();
        let (low, high) = (entries.iter().min().unwrap(), entries.iter().max().unwrap());
        // Each of two threads has called each function as often, but for what the window cuts at both ends.
        assert!(entries.len() > FUNCTIONS / 2 && *low > 0 && high - low <= 4, "{low} {high}");
        live.assert_restored(round);
    }
    live.end();
}
