/* A matrix times a vector, the sum kept in the result. */
#include "driver.h"

static float a[8][128], x[128], y[8];

KERNEL void kernel(float *y, float (*a)[128], float *x, int n) {
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < n; j++) y[i] += a[i][j] * x[j];
}

static void run(void) {
    kernel(y, a, x, 128 + 0 * N);
}
