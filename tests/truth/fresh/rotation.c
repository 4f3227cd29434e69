/* A point turned again and again, in registers. */
#include "../kernels/driver.h"

static double out[2];

KERNEL void kernel(double *out, int n, double c, double s) {
    double x = 1, y = 0;
    for (int i = 0; i < n; i++) {
        double t = x * c - y * s;
        y = x * s + y * c;
        x = t;
    }
    out[0] = x; out[1] = y;
}

static void run(void) { kernel(out, N, 0.8, 0.6); }
