/* Pairs of programs, before and after the removal of a bottleneck: speedups PAIR before|after [TIMES]
   Both do the same work and print the same result, and the seconds of processor time of the work, which is in functions k_*.
   gcc -O2 -fno-if-conversion -fno-if-conversion2 -fno-tree-vectorize -fno-tree-loop-distribute-patterns -pthread */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

typedef uint64_t u64;
#define KERNEL __attribute__((noipa)) u64
#define MB (1ul << 20)

static u64 seed = 88172645463325252u;
static u64 rnd(void) { seed ^= seed << 13; seed ^= seed >> 7; return seed ^= seed << 17; }
static void *room(u64 bytes) {
    void *all = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (all == MAP_FAILED) exit(3);
    return all;
}

/* prefetch: independent loads at addresses that a chain of multiplications makes known late */
KERNEL k_lookup(u64 *d, u64 mask, u64 *keys, u64 n) {
    u64 s = 0;
    for (u64 i = 0; i < n; i++) { u64 x = d[keys[i] & mask]; for (int k = 0; k < 24; k++) x = x * 3 ^ x >> 7; s += x; }
    return s;
}
KERNEL k_lookup_ahead(u64 *d, u64 mask, u64 *keys, u64 n) {
    u64 s = 0;
    for (u64 i = 0; i < n; i++) {
        __builtin_prefetch(&d[keys[i + 16] & mask]);
        u64 x = d[keys[i] & mask]; for (int k = 0; k < 24; k++) x = x * 3 ^ x >> 7; s += x;
    }
    return s;
}
/* branchless */
KERNEL k_select(unsigned char *d, u64 mask, u64 n) {
    u64 s = 0; for (u64 i = 0; i < n; i++) { if (d[i & mask] < 128) s += i; } return s;
}
KERNEL k_masked(unsigned char *d, u64 mask, u64 n) {
    u64 s = 0; for (u64 i = 0; i < n; i++) s += i & -(u64)(d[i & mask] < 128); return s;
}
/* accumulators: whole numbers, so that the order of additions does not matter */
KERNEL k_sum(double *d, u64 mask, u64 n) {
    double s = 0; for (u64 i = 0; i < n; i++) s += d[i & mask]; return (u64)s;
}
KERNEL k_sums(double *d, u64 mask, u64 n) {
    double a = 0, b = 0, c = 0, e = 0;
    for (u64 i = 0; i < n; i += 4) { double *p = d + (i & mask); a += p[0]; b += p[1]; c += p[2]; e += p[3]; }
    return (u64)(a + b + c + e);
}
/* forwarding: two narrow stores that one wide load waits for; after: kept in a register */
KERNEL k_halves(volatile unsigned *m, u64 n) {
    u64 s = 0; for (u64 i = 0; i < n; i++) { m[0] = (unsigned)s; m[1] = (unsigned)i; s += *(volatile u64 *)m >> 3; } return s;
}
KERNEL k_whole(volatile unsigned *m, u64 n) {
    u64 s = 0;
    for (u64 i = 0; i < n; i++) { m[0] = (unsigned)s; m[1] = (unsigned)i; s += ((u64)(unsigned)i << 32 | (unsigned)s) >> 3; }
    return s;
}
/* divide: by a number that does not change; after: by its reciprocal (exact for these dividends) */
KERNEL k_quotients(u64 *d, u64 mask, u64 by, u64 n) {
    u64 s = 0; for (u64 i = 0; i < n; i++) s += d[i & mask] / by; return s;
}
KERNEL k_products(u64 *d, u64 mask, u64 by, u64 n) {
    u64 s = 0, m = (u64)-1 / by + 1;
    for (u64 i = 0; i < n; i++) s += (u64)((unsigned __int128)d[i & mask] * m >> 64);
    return s;
}
/* interchange: sums of columns, column by column or row by row */
KERNEL k_columns(unsigned *d, u64 *to, u64 rows, u64 n) {
    for (u64 j = 0; j < n; j++) { u64 s = 0; for (u64 i = 0; i < rows; i++) s += d[i * n + j]; to[j] += s; }
    return to[n / 2];
}
KERNEL k_rows(unsigned *d, u64 *to, u64 rows, u64 n) {
    for (u64 i = 0; i < rows; i++) for (u64 j = 0; j < n; j++) to[j] += d[i * n + j];
    return to[n / 2];
}
/* footprint: small numbers in eight bytes or in one */
KERNEL k_wide(u64 *d, u64 *keys, u64 mask, u64 n) {
    u64 s = 0, x = 1; for (u64 i = 0; i < n; i++) { x = d[(keys[i & 4095] + x * 40503) & mask]; s += x; } return s;
}
KERNEL k_narrow(unsigned char *d, u64 *keys, u64 mask, u64 n) {
    u64 s = 0, x = 1; for (u64 i = 0; i < n; i++) { x = d[(keys[i & 4095] + x * 40503) & mask]; s += x; } return s;
}
/* stride: rows of 4 KiB, which share sets and pages; after: next to each other */
KERNEL k_strided(u64 *d, u64 step, u64 rows, u64 n) {
    u64 s = 0; for (u64 r = 0; r < n; r++) for (u64 i = 0; i < rows; i++) s += d[i * step]; return s;
}
/* sharing: two threads count in one cache line, or in one each */
static u64 counted;
static void *counting(void *at) { volatile u64 *mine = at; for (u64 i = 0; i < counted; i++) ++*mine; return 0; }
KERNEL k_sharing(u64 *at, u64 apart, u64 n) {
    pthread_t other; counted = n;
    if (pthread_create(&other, 0, counting, at + apart)) exit(3);
    counting(at);
    pthread_join(other, 0);
    return at[0] + at[apart];
}

/* sorted: a branch on random numbers, or on the same ones sorted */
KERNEL k_below(unsigned char *d, u64 mask, u64 n) {
    u64 s = 0; for (u64 i = 0; i < n; i++) { if (d[i & mask] < 128) s += d[i & mask]; } return s;
}
/* list: nodes in random order, or their values in a row */
struct node { struct node *next; u64 value; };
KERNEL k_list(struct node *at, u64 n) { u64 s = 0; for (; n; n--) { s = s * 3 + at->value; at = at->next; } return s; }
KERNEL k_array(u64 *d, u64 mask, u64 n) { u64 s = 0; for (u64 i = 0; i < n; i++) s = s * 3 + d[i & mask]; return s; }
/* hash: a polynomial modulo 2^64 by one multiplication after the other, or four coefficients at once */
KERNEL k_hash(u64 *d, u64 mask, u64 x, u64 n) {
    u64 s = 0; for (u64 i = 0; i < n; i++) s = s * x + d[i & mask]; return s;
}
KERNEL k_hash_by_four(u64 *d, u64 mask, u64 x, u64 n) {
    u64 s = 0, x2 = x * x, x3 = x2 * x, x4 = x2 * x2;
    for (u64 i = 0; i < n; i += 4) { u64 *p = d + (i & mask); s = s * x4 + (p[0] * x3 + p[1] * x2 + p[2] * x + p[3]); }
    return s;
}
static int by_value(const void *a, const void *b) { return *(unsigned char *)a - *(unsigned char *)b; }

static double spent(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec * 1e-9; }

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    int after = !strcmp(argv[2], "after");
    double times = argc > 3 ? atof(argv[3]) : 1;
    u64 m = 1000000 * times, r = 0;
    double begin = 0;
#define IS(name) (!strcmp(argv[1], name))
    if (IS("prefetch")) {
        u64 n = 6 * m, *d = room(256 * MB), *keys = room(8 * (n + 64));
        for (u64 i = 0; i < 32 * MB; i++) d[i] = i;
        for (u64 i = 0; i < n; i++) keys[i] = rnd();
        begin = spent();
        r = (after ? k_lookup_ahead : k_lookup)(d, 32 * MB - 1, keys, n);
    } else if (IS("branchless")) {
        unsigned char *d = room(MB); for (u64 i = 0; i < MB; i++) d[i] = rnd() >> 20;
        begin = spent();
        r = (after ? k_masked : k_select)(d, MB - 1, 200 * m);
    } else if (IS("accumulators")) {
        double *d = room(8192); for (u64 i = 0; i < 1024; i++) d[i] = i & 7;
        begin = spent();
        r = (after ? k_sums : k_sum)(d, 1023, 600 * m / 4 * 4);
    } else if (IS("forwarding")) {
        static unsigned x[16] __attribute__((aligned(64)));
        begin = spent();
        r = (after ? k_whole : k_halves)(x, 150 * m);
    } else if (IS("divide")) {
        u64 *d = room(8192); for (u64 i = 0; i < 1024; i++) d[i] = rnd() >> 40;
        begin = spent();
        r = (after ? k_products : k_quotients)(d, 1023, 1000003, 300 * m);
    } else if (IS("interchange")) {
        u64 n = 4096; unsigned *d = room(4 * n * n); u64 *to = room(8 * n);
        for (u64 i = 0; i < n * n; i++) d[i] = i * 31 & 255;
        begin = spent();
        for (u64 k = 0; k < (u64)(10 * times) + 1; k++) r = (after ? k_rows : k_columns)(d, to, n, n);
    } else if (IS("sorted")) {
        unsigned char *d = room(MB); for (u64 i = 0; i < MB; i++) d[i] = rnd() >> 20;
        if (after) qsort(d, MB, 1, by_value);
        begin = spent();
        r = k_below(d, MB - 1, (u64)(200 * times) * MB);
    } else if (IS("list")) {
        u64 n = 4 * MB, *d = room(8 * n); struct node *all = room(n * sizeof *all);
        for (u64 i = 0; i < n; i++) d[i] = i;
        for (u64 i = n - 1; i > 0; i--) { u64 j = rnd() % (i + 1), x = d[i]; d[i] = d[j]; d[j] = x; }
        for (u64 i = 0; i < n; i++) { all[d[i]].next = &all[d[(i + 1) & (n - 1)]]; all[d[i]].value = d[i]; }
        begin = spent();
        r = after ? k_array(d, n - 1, 10 * m) : k_list(&all[d[0]], 10 * m);
    } else if (IS("hash")) {
        u64 *d = room(8192); for (u64 i = 0; i < 1024; i++) d[i] = rnd();
        begin = spent();
        r = (after ? k_hash_by_four : k_hash)(d, 1023, 6364136223846793005u, 400 * m / 4 * 4);
    } else if (IS("footprint")) {
        u64 entries = 256 << 10, *keys = room(32768);
        for (u64 i = 0; i < 4096; i++) keys[i] = rnd();
        u64 *wide = room(8 * entries); unsigned char *narrow = room(entries);
        for (u64 i = 0; i < entries; i++) wide[i] = narrow[i] = i * 7;
        begin = spent();
        r = after ? k_narrow(narrow, keys, entries - 1, 60 * m) : k_wide(wide, keys, entries - 1, 60 * m);
    } else if (IS("stride")) {
        u64 rows = 4096, step = after ? 1 : 512, *d = room(8 * 512 * rows);
        for (u64 i = 0; i < rows; i++) d[i * step] = i;
        begin = spent();
        r = k_strided(d, step, rows, 60 * m / rows + 1);
    } else if (IS("sharing")) {
        u64 *at = room(4096);
        begin = spent();
        r = k_sharing(at, after ? 64 : 1, 600 * m);
    } else return 2;
    printf("%lx\n%.4f\n", r, spent() - begin);
    return 0;
}
