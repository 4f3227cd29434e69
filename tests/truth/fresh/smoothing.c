/* Exponential smoothing in single precision, its last value taken from memory. */
#include "../kernels/driver.h"

static float x[1024], y[1024];

KERNEL void kernel(float *y, float *x, int n) {
    for (int i = 1; i < n; i++) y[i] = y[i - 1] * 0.75f + x[i];
}

static void run(void) {
    for (int i = 0; i < 1024; i++) x[i] = (float)(next() & 255);
    kernel(y, x, N);
}
