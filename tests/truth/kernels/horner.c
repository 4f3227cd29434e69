/* A polynomial by Horner's rule. */
#include "driver.h"

static double c[1024];

KERNEL double kernel(double *c, double x, int n) {
    double p = 0;
    for (int i = 0; i < n; i++) p = p * x + c[i];
    return p;
}

static void run(void) {
    sink = (u64)kernel(c, 0.5, N);
}
