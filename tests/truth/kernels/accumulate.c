/* C[0] += a * b, with a and b from arrays that could overlap C. */
#include "driver.h"

static double a[1024], b[1024], c[1];

KERNEL void kernel(double *c, double *a, double *b, int n) {
    for (int i = 0; i < n; i++) c[0] += a[i] * b[i];
}

static void run(void) {
    kernel(c, a, b, N);
}
