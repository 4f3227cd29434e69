/* Calls a small function that is not inlined. */
#include "driver.h"

__attribute__((noinline)) static u64 mix(u64 x) {
    __asm__ volatile("" : "+r"(x));
    return x * 3;
}

KERNEL u64 kernel(u64 x, int n) {
    for (int i = 0; i < n; i++) x += mix(x);
    return x;
}

static void run(void) {
    sink = kernel(1, N);
}
