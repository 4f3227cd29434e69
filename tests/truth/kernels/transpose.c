/* Transposes a matrix in place. */
#include "driver.h"

static u32 a[128][128];

KERNEL void kernel(u32 (*a)[128], int n) {
    for (int i = n - 4; i < n; i++)
        for (int j = 0; j < i; j++) {
            u32 x = a[i][j];
            a[i][j] = a[j][i];
            a[j][i] = x;
        }
}

static void run(void) {
    kernel(a, 128 + 0 * N);
}
