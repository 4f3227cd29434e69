/* A row of Gaussian elimination. */
#include "driver.h"

static double a[2][1024];

KERNEL void kernel(double *row, double *pivot, double factor, int n) {
    for (int j = 0; j < n; j++) row[j] -= factor * pivot[j];
}

static void run(void) {
    kernel(a[1], a[0], 0.5, N);
}
