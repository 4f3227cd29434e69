/* A resonator of single precision: two elements back. */
#include "../kernels/driver.h"

static float y[1024];

KERNEL void kernel(float *y, float g, int n) {
    for (int i = 2; i < n; i++) y[i] = y[i - 2] * g;
}

static void run(void) {
    y[0] = 1; y[1] = 2;
    kernel(y, -0.5f, N);
}
