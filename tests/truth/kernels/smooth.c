/* A three-point average in place. */
#include "driver.h"

static double a[1024];

KERNEL void kernel(double *a, int n) {
    for (int i = 1; i < n; i++) a[i] = (a[i - 1] + a[i] + a[i + 1]) * 0.25;
}

static void run(void) {
    for (int i = 0; i < 1024; i++) a[i] = (double)(next() & 255);
    kernel(a, N);
}
