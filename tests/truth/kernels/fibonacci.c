/* Fibonacci numbers in an array. */
#include "driver.h"

static u64 f[1024];

KERNEL void kernel(u64 *f, int n) {
    for (int i = 2; i < n; i++) f[i] = f[i - 1] + f[i - 2];
}

static void run(void) {
    f[1] = 1;
    kernel(f, N);
}
