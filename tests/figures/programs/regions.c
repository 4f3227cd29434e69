/* A pointer chase and dependent divisions in regions, beside a hash loop in and outside of one; with an argument in two threads. */
#include "tdtool.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#define N (1<<22)
static size_t *ring;
__attribute__((noinline,noipa)) size_t chase(size_t n, size_t at) { while (n--) at = ring[at]; return at; }
__attribute__((noinline,noipa)) double divide(long n, double x) { while (n--) x = 1.0 / (x + 0.5); return x; }
__attribute__((noinline,noipa)) unsigned both(long n, unsigned x) { while (n--) x = x * 1664525u + 1013904223u; return x; }
volatile double sink; volatile size_t sunk;
static void *work(void *p) {
    size_t at = (size_t)p;
    for (int i = 0; i < 40; i++) {
        tdtool_begin("round");
        tdtool_begin("chase"); sunk = at = chase(30000, at); tdtool_end("chase");
        tdtool_begin("divide"); sink = divide(3000000, 1.0); sunk = both(1000000, i); tdtool_end("divide");
        sunk = both(1000000, i);
        tdtool_end("round");
    }
    return 0;
}
int main(int c, char **v) {
    ring = malloc(N * sizeof *ring);
    for (size_t i = 0; i < N; i++) ring[i] = i;
    unsigned s = 1;
    for (size_t i = N - 1; i > 0; i--) { s = s * 1664525u + 1013904223u; size_t j = ((size_t)s << 7 ^ s >> 9) % i; size_t t = ring[i]; ring[i] = ring[j]; ring[j] = t; }
    if (c > 1) { pthread_t t[2]; for (long i = 0; i < 2; i++) pthread_create(&t[i], 0, work, (void *)(i * 1000)); for (int i = 0; i < 2; i++) pthread_join(t[i], 0); }
    else work(0);
    return 0;
}
