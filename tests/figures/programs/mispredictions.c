/* Branches of known nature. `mispredictions KIND MODE N ROUNDS` runs N of them on data that is `hard`, or `easy`: the same
 * sorted (alternating, where the hard data is sorted; of nested calls as it is, but less deep), so that the work is the
 * same and every branch is predicted. It prints the function and core cycles for each: of each part a twentieth of the
 * rounds is faster, since others disturb some. The clock is the time-stamp counter against a chain of
 * additions, one cycle each, before and after each round. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

typedef unsigned char byte;
#define NOINLINE __attribute__((noipa))
#define KEEP(x) __asm__ volatile("" : "+r"(x))

/* Items of a part; more of loops, which end with one. */
enum { PART = 50000 };

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
/* The same of an object that another one has: one load more. */
static struct { struct object *object; } owners[4] = {{objects}, {objects + 1}, {objects + 2}, {objects + 3}};
NOINLINE long owned(const byte *d, long n) {
    long x = 0;
    for (long i = 0; i < n; i++) {
        struct object *o = owners[d[i]].object;
        KEEP(o);
        x = o->table->act(o, x);
    }
    return x;
}
/* A branch on what one of two pointers leads to: two loads more than `branch`. */
static const byte bits[2] = {0, 1};
static const byte *volatile bit[2] = {bits, bits + 1};
NOINLINE long pointed(const byte *d, long n) {
    long x = 0, y = 1;
    for (long i = 0; i < n; i++)
        if (*bit[d[i]]) { x += i; KEEP(x); } else { y ^= i; KEEP(y); }
    return x + y;
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

/* Calls nested as deep as n, each from one of two places. */
NOINLINE long deep(const byte *d, long n) {
    long x;
    if (!n) return 0;
    if (*d) { x = deep(d + 1, n - 1); KEEP(x); x += n; } else { x = deep(d + 1, n - 1); KEEP(x); x ^= n; }
    return x;
}
/* Calls that longjmp(3) ends; after it a function returns whose caller is no more what the return stack has on top
 * (hard), or another one that was called later (easy). */
static void *frame[5];
NOINLINE void leave(void) { __builtin_longjmp(frame, 1); }
NOINLINE long leaf(long x) { return x + 1; }
NOINLINE long caught(long x) {
    if (!__builtin_setjmp(frame)) leave();
    return x + 1;
}
NOINLINE long skipped(const byte *d, long n) {
    static long i, x;
    for (i = x = 0; i < n; i++)
        if (d[i]) { x = caught(x); } else { if (!__builtin_setjmp(frame)) leave(); x = leaf(x); }
    return x;
}
/* Jumps to an address that is pushed, by a return (hard) or an indirect jump (easy). */
NOINLINE long pushed(const byte *d, long n) {
    long x = 0;
    for (long i = 0; i < n; i++)
        if (d[i])
            __asm__ volatile("sub $128, %%rsp\nlea 1f(%%rip), %%rax\npush %%rax\nret\n"
                             "1: add $128, %%rsp" : "+r"(x) : : "rax");
        else
            __asm__ volatile("sub $128, %%rsp\nlea 1f(%%rip), %%rax\npush %%rax\npop %%rax\njmp *%%rax\n"
                             "1: add $128, %%rsp" : "+r"(x) : : "rax");
    return x + n;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static int order(const void *a, const void *b) { return *(const byte *)b - *(const byte *)a; }
/* Numbers below `kinds` (2 or more), the last one `share` of 100 times, the others alike. */
static void numbers(byte *d, long n, unsigned kinds, unsigned share) {
    for (long i = 0; i < n; i++) d[i] = random_below(100) < share ? kinds - 1 : random_below(kinds - 1);
}
/* Runs of ones and a zero; their lengths from `low` to `high`. */
static void runs(byte *d, long n, unsigned low, unsigned high) {
    for (long i = 0; i < n;) {
        long length = low + random_below(high - low + 1);
        while (length-- && i < n - 1) d[i++] = 1;
        d[i++] = 0;
    }
}
/* How deep calls nest, and may nest so that every return is predicted. */
enum { SHALLOW = 24 };
static unsigned nested;
/* Makes hard data; the function to run. */
static const char *fill(const char *kind, byte *d, long n) {
    unsigned share, low, high;
    if (sscanf(kind, "random %u", &share) == 1) return numbers(d, n, 2, share), "branch";
    if (sscanf(kind, "switch %u", &share) == 1) return numbers(d, n, 8, share), "choose";
    if (sscanf(kind, "pointed %u", &share) == 1) return numbers(d, n, 2, share), "pointed";
    if (sscanf(kind, "owned %u", &share) == 1) return numbers(d, n, 4, share), "owned";
    if (sscanf(kind, "calls %u", &share) == 1) return numbers(d, n, 4, share), "calls";
    if (sscanf(kind, "trips %u to %u", &low, &high) == 2) return runs(d, n, low, high), "loop";
    if (sscanf(kind, "trips %u", &low) == 1) return runs(d, n, low, low), "loop";
    if (!strcmp(kind, "search")) return numbers(d, n, 257, 0), "search";
    if (!strcmp(kind, "sorted")) {
        numbers(d, n, 2, 50);
        qsort(d, n, 1, order);
        return "branch";
    }
    if (sscanf(kind, "turns %u", &share) == 1) {
        numbers(d, n, 2, share);
        for (long i = 1; i < n; i++) d[i] ^= d[i - 1];
        return "branch";
    }
    if (sscanf(kind, "deep %u of %u", &nested, &share) == 2) {
        for (long i = 0; i < n; i++) d[i] = i % nested % share == 0;
        return "deep";
    }
    if (sscanf(kind, "deep %u", &nested) == 1) {
        for (long i = 0; i < n; i++) d[i] = i & 1;
        return "deep";
    }
    if (!strcmp(kind, "skipped") || !strcmp(kind, "pushed")) return memset(d, 1, n), kind;
    /* The third bit is the conjunction or the exclusive or of the first two. */
    int is_and = !strcmp(kind, "and");
    if (!is_and && strcmp(kind, "exclusive or")) exit(2);
    numbers(d, n, 4, 25);
    for (long i = 0; i < n; i++) d[i] |= (is_and ? d[i] & d[i] >> 1 & 1 : (d[i] ^ d[i] >> 1) & 1) << 2;
    return "three";
}

static long run(const char *of, const byte *d, long n) {
    if (!strcmp(of, "branch")) return branch(d, n);
    if (!strcmp(of, "loop")) return loop(d, n);
    if (!strcmp(of, "three")) return three(d, n);
    if (!strcmp(of, "choose")) return choose(d, n);
    if (!strcmp(of, "calls")) return calls(d, n);
    if (!strcmp(of, "owned")) return owned(d, n);
    if (!strcmp(of, "pointed")) return pointed(d, n);
    if (!strcmp(of, "skipped")) return skipped(d, n);
    if (!strcmp(of, "pushed")) return pushed(d, n);
    if (!strcmp(of, "deep")) {
        long all = 0;
        for (long i = 0; i + nested <= n; i += nested) {
            all += deep(d + i, nested);
            /* As many innermost calls as where it is less deep. */
            for (unsigned level = SHALLOW; level < nested; level += SHALLOW) all += deep(d, 0);
        }
        return all;
    }
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
    const char *of = fill(arguments[1], d, n);
    if (!strcmp(arguments[2], "easy")) {
        /* The same calls, but no deeper than processors keep return addresses. */
        if (!strcmp(of, "deep")) nested = nested < SHALLOW ? nested : SHALLOW;
        else qsort(d, n, 1, order);
        if (!strcmp(of, "skipped") || !strcmp(of, "pushed")) memset(d, 0, n);
        for (long i = 0; i < n && !strcmp(arguments[1], "sorted"); i++) d[i] = i & 1;
    }
    long *starts = malloc((n / PART + 2) * sizeof *starts), parts = 0, good = 0;
    for (long from = 0; from < n; parts++) {
        starts[parts] = from;
        from = from + PART < n ? from + PART : n;
        while (!strcmp(of, "loop") && from < n && d[from - 1]) from++;
    }
    starts[parts] = n;
    double *took = malloc(parts * rounds * sizeof *took), sum = 0;
    for (long round = 0; round < rounds; round++) {
        double before = tick(), after;
        for (long at = 0; at < parts; at++) {
            unsigned long begin = __rdtsc();
            all += run(of, d + starts[at], starts[at + 1] - starts[at]);
            took[at * rounds + good] = (__rdtsc() - begin) / before;
        }
        after = tick();
        good += before / after < 1.01 && after / before < 1.01;
    }
    for (long at = 0; at < parts; at++) {
        qsort(took + at * rounds, good, sizeof *took, ascending);
        sum += took[at * rounds + good / 20];
    }
    printf("%s %.4f\n", of, good ? sum / n : 0.0 / 0.0);
    return all == 42;
}
