/* Two rounds of: two seconds of a pointer chase, one of new pages, two of dependent divisions; with frame pointers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#define N (1<<22)
static size_t *ring;
static double now(void){struct timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec+1e-9*t.tv_nsec;}
__attribute__((noipa)) size_t chase(size_t n, size_t at) { while (n--) at = ring[at]; return at; }
__attribute__((noipa)) double divide(long n, double x) { while (n--) x = 1.0 / (x + 0.5); return x; }
__attribute__((noipa)) void pages(void) { char *volatile p = malloc(64 << 20); memset(p, 1, 64 << 20); free(p); }
volatile double sink;
int main(void) {
    ring = malloc(N * sizeof *ring);
    for (size_t i = 0; i < N; i++) ring[i] = (i * 1664525 + 1013904223) % N;
    for (int round = 0; round < 2; round++) {
        double t = now(); while (now() < t + 2) sink = chase(200000, 1);
        t = now(); while (now() < t + 1) pages();
        t = now(); while (now() < t + 2) sink = divide(1000000, 1.0);
    }
    return 0;
}
