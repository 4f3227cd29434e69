/* Branches of known nature. `mispredictions KIND MODE N ROUNDS` runs N of them on data that is `hard` or `easy`, of the
 * same work: as many executions of each side. It prints core cycles for each, the least of all rounds; the clock is
 * the time-stamp counter against a chain of additions, one cycle each, before and after. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

typedef unsigned char byte;
#define NOINLINE __attribute__((noipa))
#define KEEP(x) __asm__ volatile("" : "+r"(x))

static unsigned long state = 88172645463325252ul;
static unsigned random_below(unsigned most) {
    state ^= state << 13; state ^= state >> 7; state ^= state << 17;
    return (state >> 33) % most;
}

/* One branch. */
NOINLINE long branch(const byte *d, long n) {
    long x = 0, y = 1;
    for (long i = 0; i < n; i++)
        if (d[i]) { x += i; KEEP(x); } else { y ^= i; KEEP(y); }
    return x + y;
}
/* An inner loop as long as the data says. */
NOINLINE long loop(const byte *d, long n) {
    long x = 0, y = 1;
    for (long i = 0; i < n; i++) {
        while (d[i]) { x += i++; KEEP(x); }
        y ^= x; KEEP(y);
    }
    return x + y;
}
/* Two random branches (bits 0 and 1), and one (bit 2) that follows from them. */
NOINLINE long three(const byte *d, long n) {
    long x = 0, y = 1, z = 2;
    for (long i = 0; i < n; i++) {
        if (d[i] & 1) { x += i; KEEP(x); } else { x ^= i; KEEP(x); }
        if (d[i] & 2) { y += i; KEEP(y); } else { y ^= i; KEEP(y); }
        if (d[i] & 4) { z += i; KEEP(z); } else { z ^= i; KEEP(z); }
    }
    return x + y + z;
}
/* A jump through a table. */
NOINLINE long choose(const byte *d, long n) {
    long x = 0;
    for (long i = 0; i < n; i++)
        switch (d[i]) {
        case 0: x += 1; KEEP(x); break;
        case 1: x ^= i; KEEP(x); break;
        case 2: x -= 5; KEEP(x); break;
        case 3: x += i; KEEP(x); break;
        case 4: x += 7; KEEP(x); break;
        case 5: x ^= 9; KEEP(x); break;
        case 6: x -= i; KEEP(x); break;
        default: x = -x; KEEP(x); break;
        }
    return x;
}
/* A call through an object's table. */
struct object;
struct table { long (*act)(struct object *, long); };
struct object { const struct table *table; long value; };
NOINLINE long act0(struct object *o, long x) { return x + o->value; }
NOINLINE long act1(struct object *o, long x) { return x ^ o->value; }
NOINLINE long act2(struct object *o, long x) { return x - o->value; }
NOINLINE long act3(struct object *o, long x) { return o->value - x; }
static const struct table tables[4] = {{act0}, {act1}, {act2}, {act3}};
static struct object objects[4] = {{&tables[0], 1}, {&tables[1], 2}, {&tables[2], 3}, {&tables[3], 4}};
static struct object *volatile all_objects = objects;
NOINLINE long calls(const byte *d, long n) {
    long x = 0;
    struct object *all = all_objects;
    for (long i = 0; i < n; i++) x = all[d[i]].table->act(&all[d[i]], x);
    return x;
}
/* A search in a sorted table of 256: eight branches, of which each waits for the one before. */
static byte sorted_table[256];
NOINLINE long search(const byte *d, long n) {
    long found = 0;
    for (long i = 0; i < n; i++) {
        long low = 0, high = 256;
        while (high - low > 1) {
            long middle = (low + high) / 2;
            if (sorted_table[middle] <= d[i]) { low = middle; KEEP(low); } else { high = middle; KEEP(high); }
        }
        found += low;
    }
    return found;
}

static int order(const void *a, const void *b) { return *(const byte *)a - *(const byte *)b; }
/* How the data is made: `share` of 1,000 are 1; each repeats after `period` if that is given. */
static void bits(byte *d, long n, unsigned share, int easy) {
    for (long i = 0; i < n; i++) d[i] = easy ? i % 1000 * share / 1000 != (i % 1000 + 1) * share / 1000
                                             : random_below(1000) < share;
}
/* Runs of ones and a zero; their lengths from `low` to `high`. Easy: all ones, then all zeros. */
static void runs(byte *d, long n, unsigned low, unsigned high, int easy) {
    long zeros = 0;
    for (long i = 0; i < n; zeros++) {
        long length = low + random_below(high - low + 1);
        while (length-- && i < n - 1) d[i++] = 1;
        d[i++] = 0;
    }
    if (easy) { memset(d, 1, n - zeros); memset(d + n - zeros, 0, zeros); }
}
/* Numbers below `kinds`, the first one `first` of 100 times, the others alike. Easy: in turn. */
static void numbers(byte *d, long n, unsigned kinds, unsigned first, int easy) {
    static byte turn[100];
    for (unsigned i = 0; i < 100; i++) turn[i] = i < first ? 0 : 1 + (i - first) % (kinds - 1);
    for (long i = 0; i < n; i++) d[i] = turn[easy ? i * 37 % 100 : random_below(100)];
}
static const char *fill(const char *kind, byte *d, long n, int easy) {
    const char *of = "branch";
    if (!strcmp(kind, "random 50 %")) bits(d, n, 500, easy);
    else if (!strcmp(kind, "random 10 %")) bits(d, n, 100, easy);
    else if (!strcmp(kind, "random 2 %")) bits(d, n, 20, easy);
    else if (!strcmp(kind, "random 25 %")) bits(d, n, 250, easy);
    else if (!strcmp(kind, "sorted")) { bits(d, n, 500, easy); if (!easy) qsort(d, n, 1, order); }
    else if (!strcmp(kind, "bursts")) {
        for (long i = 0, now = 0; i < n; i++) d[i] = now ^= easy ? i % 10 == 0 : random_below(10) == 0;
    } else if (!strcmp(kind, "trips 4")) of = "loop", runs(d, n, 4, 4, easy);
    else if (!strcmp(kind, "trips 17")) of = "loop", runs(d, n, 17, 17, easy);
    else if (!strcmp(kind, "trips 100")) of = "loop", runs(d, n, 100, 100, easy);
    else if (!strcmp(kind, "trips 1 to 16")) of = "loop", runs(d, n, 1, 16, easy);
    else if (!strcmp(kind, "trips 1 to 4")) of = "loop", runs(d, n, 1, 4, easy);
    else if (!strcmp(kind, "correlated")) {
        of = "three";
        for (long i = 0; i < n; i++) { unsigned b = easy ? i & 3 : random_below(4); d[i] = b | (b & b >> 1) << 2; }
    } else if (!strcmp(kind, "exclusive or")) {
        of = "three";
        for (long i = 0; i < n; i++) { unsigned b = easy ? i & 3 : random_below(4); d[i] = b | ((b ^ b >> 1) & 1) << 2; }
    } else if (!strcmp(kind, "switch 70 %")) of = "choose", numbers(d, n, 8, 70, easy);
    else if (!strcmp(kind, "switch even")) of = "choose", numbers(d, n, 8, 12, easy);
    else if (!strcmp(kind, "calls even")) of = "calls", numbers(d, n, 4, 25, easy);
    else if (!strcmp(kind, "calls 90 %")) of = "calls", numbers(d, n, 4, 90, easy);
    else if (!strcmp(kind, "search")) {
        of = "search";
        for (long i = 0; i < n; i++) d[i] = easy ? i / 64 : random_below(256);
    } else exit(2);
    return of;
}

static long run(const char *of, const byte *d, long n) {
    if (!strcmp(of, "branch")) return branch(d, n);
    if (!strcmp(of, "loop")) return loop(d, n);
    if (!strcmp(of, "three")) return three(d, n);
    if (!strcmp(of, "choose")) return choose(d, n);
    if (!strcmp(of, "calls")) return calls(d, n);
    return search(d, n);
}
/* Ticks of a cycle. */
static double tick(void) {
    unsigned long least = ~0ul;
    for (int round = 0; round < 8; round++) {
        unsigned long begin = __rdtsc(), x = 1;
        for (long i = 0; i < 20000; i++)
            __asm__ volatile("add %0, %0\nadd %0, %0\nadd %0, %0\nadd %0, %0\nadd %0, %0\n"
                             "add %0, %0\nadd %0, %0\nadd %0, %0\nadd %0, %0\nadd %0, %0" : "+r"(x));
        unsigned long took = __rdtsc() - begin;
        if (took < least) least = took;
    }
    return least / 200000.0;
}
int main(int count, char **arguments) {
    if (count < 5) return 2;
    long n = atol(arguments[3]), rounds = atol(arguments[4]), all = 0;
    byte *d = malloc(n);
    for (int i = 0; i < 256; i++) sorted_table[i] = i;
    const char *of = fill(arguments[1], d, n, !strcmp(arguments[2], "easy"));
    double best = 1e9;
    for (long round = 0; round < rounds; round++) {
        double before = tick();
        unsigned long begin = __rdtsc();
        all += run(of, d, n);
        double took = __rdtsc() - begin, after = tick();
        double cycles = took / ((before + after) / 2) / n;
        if (before / after < 1.01 && after / before < 1.01 && cycles < best) best = cycles;
    }
    printf("%s %.4f\n", of, best);
    return all == 42;
}
