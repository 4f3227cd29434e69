//! Programs that are counted while they run.

/// What all programs have: `part`, whose result depends on every step, and the end by SIGTERM. `done`
/// says whether anything was wrong.
pub const COMMON: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
static volatile sig_atomic_t over, ticks;
static volatile long rounds, wrong;
static void end(int number) { over = 1; }
__attribute__((noipa)) unsigned long part(unsigned long n, unsigned long x) {
    for (unsigned long i = 0; i < n; i++) {
        x = x * 3 + (x >> 5);
        if (x & 16) x ^= i; else x += i & 7;
        switch (x % 7) { case 0: x++; break; case 1: x ^= 5; break; case 2: x -= 9; break; case 3: x += i; break; case 4: x *= 5; }
    }
    return x;
}
/* Short instructions only: a jump over several of them would be in the way of what was interrupted there. */
unsigned long tight(unsigned long n, unsigned long x);
__asm__(".text\n.globl tight\n.type tight,@function\ntight: mov %rsi,%rax\n"
    "1: add %rdi,%rax\nrol %rax\nxor %rdi,%rax\nnot %rax\ndec %rdi\njnz 1b\nret\n.size tight,.-tight\n");
static unsigned long both(unsigned long seed) { return part(1000, seed) ^ tight(4000, seed); }
static int done(void) {
    printf("%s\n", wrong || !rounds ? "wrong" : "right");
    return 4;
}
__attribute__((noipa)) void check(unsigned long seed, unsigned long expected) {
    if (both(seed) != expected) __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
}
"#;

/// Three threads that compute, one that waits for input, and signals every 50 µs whose siginfo is
/// checked.
pub const THREADS: &str = r#"
void on(int number, siginfo_t *info, void *context) {
    if (info->si_code != SI_TIMER || info->si_value.sival_int != 12345) wrong++;
    ticks++;
}
static void *work(void *seed) {
    unsigned long first = both((unsigned long)seed);
    while (!over) check((unsigned long)seed, first);
    return 0;
}
static int ends[2];
static void *waits(void *none) {
    char byte = 0;
    if (read(ends[0], &byte, 1) != 1 || byte != 'x') wrong++;
    return 0;
}
int main(void) {
    pthread_t threads[3], waiting;
    struct sigaction action = {.sa_sigaction = on, .sa_flags = SA_RESTART | SA_SIGINFO};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = 12345};
    struct itimerspec often = {{0, 50000}, {0, 50000}}, never = {{0, 0}, {0, 0}};
    timer_t timer;
    signal(SIGTERM, end);
    if (pipe(ends)) return 1;
    sigaction(SIGRTMIN, &action, 0);
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &often, 0);
    pthread_create(&waiting, 0, waits, 0);
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, (void *)(i + 5));
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    timer_settime(timer, 0, &never, 0);
    if (write(ends[1], "x", 1) != 1) wrong++;
    pthread_join(waiting, 0);
    if (!ticks) wrong++;
    return done();
}
"#;

/// Contexts that are switched, by calls and by a signal handler in the middle of anything: most of
/// them are saved while others run.
pub const CONTEXTS: &str = r#"
/* So many that one which is saved in a trampoline comes back after the time for which tdtool waits for that. */
enum { MOST = 1024, STACK = 1 << 14 };
static ucontext_t all[MOST], first;
static volatile int now;
static volatile sig_atomic_t is_switching;
__attribute__((noipa)) void next(void) {
    is_switching = 1;
    int from = now;
    now = (from + 1) % MOST;
    swapcontext(&all[from], &all[now]);
    is_switching = 0;
}
void on(int number) { if (!is_switching) next(); }
static void work(int seed) {
    is_switching = 0;
    unsigned long expected = both(seed);
    for (;;) {
        check(seed, expected);
        if (rounds % 7 == 0 && !is_switching) next();
        if (over) { is_switching = 1; setcontext(&first); }
    }
}
int main(void) {
    struct itimerval often = {{0, 200}, {0, 200}};
    /* Not SA_NODEFER: each signal costs a tracer a stop. On a busy machine that takes longer than the timer, and handlers
       would nest at their first instruction until the stack is full. The mask is part of a context. */
    struct sigaction action = {.sa_handler = on, .sa_flags = SA_RESTART};
    signal(SIGTERM, end);
    for (int i = 0; i < MOST; i++) {
        getcontext(&all[i]);
        all[i].uc_stack.ss_sp = malloc(STACK);
        all[i].uc_stack.ss_size = STACK;
        all[i].uc_link = &first;
        makecontext(&all[i], (void (*)(void))work, 1, i + 3);
    }
    // Until the first of them runs: this thread has no context of its own to come back to.
    is_switching = 1;
    sigaction(SIGALRM, &action, 0);
    setitimer(ITIMER_REAL, &often, 0);
    volatile int begun = 0;
    getcontext(&first);
    if (!begun++) setcontext(&all[0]);
    return done();
}
"#;

/// A process that forks and starts others all the time; children compute, too.
pub const FORKS: &str = r#"
int main(void) {
    signal(SIGTERM, end);
    unsigned long expected = part(100000, 3);
    while (!over) {
        int status;
        pid_t child = fork();
        if (!child) _exit(part(100000, 3) == expected ? 7 : 8);
        if (part(100000, 3) != expected) wrong++;
        rounds++;
        while (waitpid(child, &status, 0) != child);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) wrong++;
        if (rounds % 8 == 0 && WEXITSTATUS(system("exit 3")) != 3 && !over) wrong++;
    }
    return done();
}
"#;

/// The first thread ends; another one computes.
pub const LEADER: &str = r#"
static void *work(void *none) {
    unsigned long first = both(3);
    while (!over) check(3, first);
    exit(done());
}
int main(int count, char **arguments) {
    pthread_t thread;
    if (count > 1) over = 1;
    signal(SIGTERM, end);
    pthread_create(&thread, 0, work, 0);
    pthread_exit(0);
}
"#;

/// A child that is no thread, but has the same memory.
pub const SHARING: &str = r#"
#include <sched.h>
static char stack[1 << 16];
static int child(void *none) { for (;;) pause(); }
int main(void) {
    signal(SIGTERM, end);
    pid_t other = clone(child, stack + sizeof stack, CLONE_VM | SIGCHLD, 0);
    unsigned long first = both(3);
    while (!over) check(3, first);
    kill(other, SIGKILL);
    return done();
}
"#;
