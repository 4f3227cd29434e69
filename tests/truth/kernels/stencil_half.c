/* A[i] = A[i - 3] * 0.5 + 1 over double. */
#include "driver.h"

static double a[1024];

KERNEL void kernel(double *a, int n) {
    for (int i = 3; i < n; i++) a[i] = a[i - 3] * 0.5 + 1.0;
}

static void run(void) {
    kernel(a, N);
}
