/* The sum of an array of double. */
#include "driver.h"

static double a[1024];

KERNEL double kernel(double *a, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += a[i];
    return sum;
}

static void run(void) {
    sink = (u64)kernel(a, N);
}
