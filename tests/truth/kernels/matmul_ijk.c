/* The inner loop of a matrix product that adds to the result in memory. */
#include "driver.h"

static double a[80][80], b[80][80], c[80][80];

KERNEL void kernel(double (*c)[80], double (*a)[80], double (*b)[80], int n) {
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < n; k++) c[i][j] += a[i][k] * b[k][j];
}

static void run(void) {
    kernel(c, a, b, 80 + 0 * N);
}
