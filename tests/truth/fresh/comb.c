/* A comb filter with feedback, five elements back. */
#include "../kernels/driver.h"

static double x[1024], y[1024];

KERNEL void kernel(double *y, double *x, double g, int n) {
    for (int i = 5; i < n; i++) y[i] = x[i] + g * y[i - 5];
}

static void run(void) {
    for (int i = 0; i < 1024; i++) x[i] = (double)(next() & 255);
    kernel(y, x, 0.5, N);
}
