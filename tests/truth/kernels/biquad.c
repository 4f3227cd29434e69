/* A recursive filter of second order, its history in memory. */
#include "driver.h"

static double in[1024], out[1024];

KERNEL void kernel(double *out, double *in, int n) {
    for (int i = 2; i < n; i++) out[i] = 0.2 * in[i] + 0.5 * out[i - 1] - 0.3 * out[i - 2];
}

static void run(void) {
    for (int i = 0; i < 1024; i++) in[i] = (double)(next() & 255);
    kernel(out, in, N);
}
