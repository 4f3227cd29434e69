// What the programs share: random numbers, arrays, and how a prefetch is written.
// -DDIST=N: prefetch N iterations ahead, at the place that -DOUTER chooses; 0: not at all.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef DIST
#define DIST 0
#endif
#ifdef OUTER
#define INNER_DIST 0
#define OUTER_DIST DIST
#else
#define INNER_DIST DIST
#define OUTER_DIST 0
#endif
#define AHEAD(distance, address)                          \
    do {                                                  \
        if (distance)                                     \
            __builtin_prefetch((const void *)(address));  \
    } while (0)

static uint64_t seed = 88172645463325252ull;

// xorshift64 (Marsaglia 2003).
static inline uint64_t draw(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

// An array of so many bytes, aligned to 2 MiB, all pages present.
static void *array(size_t bytes) {
    void *found = NULL;
    if (posix_memalign(&found, 2 << 20, bytes)) exit(1);
    memset(found, 0, bytes);
    return found;
}

// Seconds of processor time: time in which other programs run is no part of it.
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

// Runs a statement so many times; the least seconds are printed beside the result.
static double least = 1e9;
#define REPEAT(times, statement)                       \
    for (int round_ = 0; round_ < (times); round_++) { \
        double begin_ = now();                         \
        statement;                                     \
        double took_ = now() - begin_;                 \
        if (took_ < least) least = took_;              \
    }
static void report(uint64_t result) { printf("%.5f %llu\n", least, (unsigned long long)result); }
