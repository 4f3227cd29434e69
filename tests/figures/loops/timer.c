/* Times one kernel natively, or steps through one call of it.

   timer time LIBRARY FUNCTION N FILL,FILL… UNIT   a line with lengths; then for each batch of rounds the cycles of one call
                                              with each length: midmeans over the accepted rounds
   timer trace LIBRARY FUNCTION N FILL,FILL…  the addresses (in the file) of the instructions executed, one per line

   Clock: the time-stamp counter against dependent additions `add rax,rbx` (1 cycle each on every processor in question),
   timed before and after each round; a round is void if the two differ. A round in which something else used the core is
   dropped: independent additions (throughput, which a sibling thread lowers) take over 6 % longer than in the fastest
   twentieth of the whole run. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#include <x86intrin.h>

typedef long (*kernel)(long, void *, void *, void *, void *);
enum { ROOM = 16384, BATCHES = 6, ROUNDS = 150, ADDS = 4000, MOST_LENGTHS = 32 };

/* Offsets in the page: arrays apart from each other modulo 4096, and by no power of two. */
static const long offset[] = {0x040, 0x5c0, 0xb00, 0xe40};
static char pool[5 * ROOM] __attribute__((aligned(4096)));
static char *array[4];

static uint64_t random64(void) {
    static uint64_t x = 88172645463325252u;
    return x ^= x << 13, x ^= x >> 7, x ^= x << 17;
}

/* Values of one array: of doubles and floats between 1 and 2, indices below 512 in random order, and so on. */
static void fill(char *at, const char *kind) {
    enum { BYTES = ROOM - 4096 };
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz   ABCDEFGHIJKLMNOPRSTUVWXYZ  etaoin";
    uint64_t text = 1;
    for (long i = 0; i < BYTES / 8; i++) {
        double x = 1 + (double)(random64() % 1000) / 1000;
        uint64_t r = random64();
        if (!strcmp(kind, "f64")) ((double *)at)[i] = x;
        else if (!strcmp(kind, "f32")) ((float *)at)[2 * i] = (float)x, ((float *)at)[2 * i + 1] = 3 - (float)x;
        else if (!strcmp(kind, "zero")) ((uint64_t *)at)[i] = 0;
        else if (!strcmp(kind, "text"))
            for (int k = 0; k < 8; k++) at[8 * i + k] = letters[(text = text * 6364136223846793005u + 1) >> 33 & 63 ? (text >> 33) % 62 : 0];
        else if (!strcmp(kind, "runs")) for (int k = 0; k < 8; k++) at[8 * i + k] = (char)((8 * i + k) / 3);
        else if (!strcmp(kind, "ascending")) ((int32_t *)at)[2 * i] = (int32_t)(6000000 + 6 * i), ((int32_t *)at)[2 * i + 1] = (int32_t)(6000003 + 6 * i);
        else ((uint64_t *)at)[i] = r;
    }
    if (!strcmp(kind, "ascending")) *(int32_t *)at = INT_MIN;
    uint32_t order[512];
    for (uint32_t i = 0; i < 512; i++) {
        uint32_t other = (uint32_t)(random64() % (i + 1));
        order[i] = order[other], order[other] = i;
    }
    if (!strcmp(kind, "index")) for (int i = 0; i < BYTES / 4; i++) ((uint32_t *)at)[i] = order[i & 511];
    if (!strcmp(kind, "list")) for (int i = 0; i < 512; i++) *(char **)(at + 16 * order[i]) = at + 16 * order[(i + 1) & 511];
}

static uint64_t ticks(void) {
    unsigned a;
    _mm_lfence();
    uint64_t t = __rdtscp(&a);
    _mm_lfence();
    return t;
}
static double chain(uint64_t adds) {
    uint64_t start = ticks(), n = adds / 100, x = 0, one = 1;
    __asm__ volatile("1:\n.rept 100\nadd %2, %0\n.endr\ndec %1\njnz 1b" : "+r"(x), "+r"(n) : "r"(one));
    return (double)(ticks() - start);
}
static double sentinel(void) {
    uint64_t start = ticks(), n = 600;
    __asm__ volatile("1:\n.rept 3\nadd %%rbx,%%rax\nadd %%rbx,%%rcx\nadd %%rbx,%%rdx\nadd %%rbx,%%rsi\nadd %%rbx,%%rdi\nadd %%rbx,%%r8\n"
                     "add %%rbx,%%r9\nadd %%rbx,%%r10\n.endr\ndec %0\njnz 1b"
                     : "+r"(n) :: "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10");
    return (double)(ticks() - start);
}
/* One call, from an idle core until its last store is in the cache. The same length some times before, so that the loop's
   exit is predicted, where the processor can at all. */
static double call(kernel f, long n) {
    enum { WARM = 3, TIMED = 4 };
    uint64_t start = 0;
    for (int i = 0; i < WARM + TIMED; i++) {
        if (i == WARM) start = ticks();
        f(n, array[0], array[1], array[2], array[3]);
        _mm_mfence();
        _mm_lfence();
    }
    return (double)(ticks() - start) / TIMED;
}

/* Lengths up to n, in steps that are multiples of what an unrolled vector loop takes at once. */
static int lengths(long n, long unit, long *length) {
    long step = (n / MOST_LENGTHS + unit - 1) / unit * unit;
    int count = 0;
    while (n - count * step >= 2 * step) length[count] = n - count * step, count++;
    return count;
}

static int order(const void *a, const void *b) { double d = *(double *)a - *(double *)b; return d < 0 ? -1 : d > 0; }
/* Mean of the middle half: the counter steps by tens of ticks, so that a median would too. */
static double midmean(double *x, int n) {
    double sum = 0;
    qsort(x, (size_t)n, sizeof *x, order);
    for (int i = n / 4; i < n - n / 4; i++) sum += x[i];
    return sum / (n - 2 * (n / 4));
}

typedef struct { double sample[MOST_LENGTHS], before, after, crowd; } round_;

/* All lengths, in random order. */
static void one_round(kernel f, const long *length, int count, round_ *r) {
    int order_[MOST_LENGTHS];
    for (int i = 0; i < count; i++) {
        int other = (int)(random64() % (uint64_t)(i + 1));
        order_[i] = order_[other], order_[other] = i;
    }
    for (int i = 0; i < count; i++) {
        volatile int wait = (int)(random64() & 15);
        while (wait > 0) wait--;
        r->sample[order_[i]] = call(f, length[order_[i]]);
    }
}

static void time_it(kernel f, long n, long unit) {
    static round_ rounds[BATCHES * ROUNDS];
    static double all[BATCHES * ROUNDS];
    long length[MOST_LENGTHS];
    int count = lengths(n, unit, length);
    for (int k = 0; k < count; k++) printf("%ld ", length[k]);
    printf("\n");
    /* What reading the counter and leaving the loop of additions add. */
    for (int i = 0; i < BATCHES * ROUNDS; i++) all[i] = 2 * chain(ADDS / 2) - chain(ADDS);
    double overhead = midmean(all, BATCHES * ROUNDS);
    for (int i = 0; i < BATCHES * ROUNDS; i++) {
        round_ *r = &rounds[i];
        if (i % ROUNDS == 0) usleep(2000);
        if (i % ROUNDS == 0) for (int warm = 0; warm < 5; warm++) one_round(f, length, count, r);
        r->before = chain(ADDS) - overhead;
        double crowd = sentinel();
        one_round(f, length, count, r);
        double after = sentinel();
        r->after = chain(ADDS) - overhead;
        all[i] = r->crowd = (crowd > after ? crowd : after) / r->before;
    }
    qsort(all, BATCHES * ROUNDS, sizeof *all, order);
    double most = all[BATCHES * ROUNDS / 20] * 1.06;
    for (int batch = 0; batch < BATCHES; batch++) {
        static double found[MOST_LENGTHS][ROUNDS];
        int kept = 0;
        for (round_ *r = rounds + batch * ROUNDS; r < rounds + (batch + 1) * ROUNDS; r++) {
            if (r->before > 1.03 * r->after || r->after > 1.03 * r->before || r->crowd > most) continue;
            for (int k = 0; k < count; k++) found[k][kept] = r->sample[k] * 2 * ADDS / (r->before + r->after);
            kept++;
        }
        if (kept < ROUNDS / 10) continue;
        for (int k = 0; k < count; k++) printf("%f ", midmean(found[k], kept));
        printf("\n");
    }
}

static uint64_t base, *seen, steps;
enum { MOST = 1 << 20 };
static void on_step(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    ucontext_t *at = context;
    if (steps < MOST) seen[steps++] = (uint64_t)at->uc_mcontext.gregs[REG_RIP] - base;
}
static void trace(kernel f, long n) {
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    seen = malloc(MOST * sizeof *seen);
    __asm__ volatile("pushfq; orq $0x100,(%%rsp); popfq" ::: "memory", "cc");
    f(n, array[0], array[1], array[2], array[3]);
    __asm__ volatile("pushfq; andq $~0x100,(%%rsp); popfq" ::: "memory", "cc");
    for (uint64_t i = 0; i < steps; i++) printf("%lx\n", seen[i]);
}

int main(int argc, char **argv) {
    if (argc < 6) return 2;
    void *library = dlopen(argv[2], RTLD_NOW);
    kernel f = library ? (kernel)dlsym(library, argv[3]) : NULL;
    if (!f) return fprintf(stderr, "%s\n", dlerror()), 1;
    Dl_info where;
    dladdr((void *)f, &where);
    base = (uint64_t)where.dli_fbase;
    for (int i = 0; i < 4; i++) array[i] = pool + i * ROOM + offset[i];
    int next = 0;
    for (char *kind = strtok(argv[5], ","); kind && next < 4; kind = strtok(NULL, ",")) fill(array[next++], kind);
    long n = atol(argv[4]);
    if (!strcmp(argv[1], "trace")) trace(f, n);
    else time_it(f, n, argc > 6 ? atol(argv[6]) : 32);
    return 0;
}
