/* Pairs of markers, as many as argument 1 says, around as many rounds of work as argument 2 says, against the
 * same loop without markers: nanoseconds per pair, and what the loop has without. */
#include "../../../src/markers/tdtool.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * t.tv_sec + t.tv_nsec;
}

static inline void work(long rounds) {
    for (long i = 0; i < rounds; i++) __asm__ volatile("" : : "r"("round") : "memory");
}

int main(int count, char **arguments) {
    long pairs = count > 1 ? atol(arguments[1]) : 1000000, rounds = count > 2 ? atol(arguments[2]) : 0;
    double begin = now();
    for (long i = 0; i < pairs; i++) {
        tdtool_begin("round");
        work(rounds);
        tdtool_end("round");
    }
    double middle = now();
    for (long i = 0; i < pairs; i++) {
        __asm__ volatile("" : : "r"("round") : "memory");
        work(rounds);
        __asm__ volatile("" : : "r"("round") : "memory");
    }
    double end = now();
    printf("%.3f %.3f\n", (middle - begin) / pairs, (end - middle) / pairs);
    return 0;
}
