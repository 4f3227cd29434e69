/* A moving sum over eight elements, its last value taken from memory. */
#include "../kernels/driver.h"

static u64 x[1024], y[1024];

KERNEL void kernel(u64 *y, u64 *x, int n) {
    for (int i = 8; i < n; i++) y[i] = y[i - 1] + x[i] - x[i - 8];
}

static void run(void) {
    for (int i = 0; i < 1024; i++) x[i] = next();
    kernel(y, x, N);
}
