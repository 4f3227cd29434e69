/* A product of an array: meant for -O0. */
#include "../kernels/driver.h"

static u64 x[1024];

KERNEL u64 kernel(u64 *x, int n) {
    u64 product = 1;
    for (int i = 0; i < n; i++) product *= x[i];
    return product;
}

static void run(void) {
    for (int i = 0; i < 1024; i++) x[i] = next() | 1;
    sink = kernel(x, N);
}
