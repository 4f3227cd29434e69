/* A three-point average from one array into another. */
#include "driver.h"

static double a[1024], b[1024];

KERNEL void kernel(double *restrict b, double *restrict a, int n) {
    for (int i = 1; i < n; i++) b[i] = (a[i - 1] + a[i] + a[i + 1]) * 0.25;
}

static void run(void) {
    kernel(b, a, N);
}
