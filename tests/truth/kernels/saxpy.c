/* y = a x + y. */
#include "driver.h"

static float x[1024], y[1024];

KERNEL void kernel(float *y, float *x, float a, int n) {
    for (int i = 0; i < n; i++) y[i] += a * x[i];
}

static void run(void) {
    kernel(y, x, 3, N);
}
