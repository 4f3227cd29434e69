/* A lagged Fibonacci generator (5, 2) over an array. */
#include "driver.h"

static u32 x[1024];

KERNEL void kernel(u32 *x, int n) {
    for (int i = 5; i < n; i++) x[i] = x[i - 5] + x[i - 2];
}

static void run(void) {
    for (int i = 0; i < 5; i++) x[i] = (u32)next();
    kernel(x, N);
}
