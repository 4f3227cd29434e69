/* A dot product. */
#include "driver.h"

static double a[1024], b[1024];

KERNEL double kernel(double *a, double *b, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static void run(void) {
    sink = (u64)kernel(a, b, N);
}
