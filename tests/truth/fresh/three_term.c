/* A recurrence of three terms, all of them from memory. */
#include "../kernels/driver.h"

static u64 t[1024];

KERNEL void kernel(u64 *t, int n) {
    for (int i = 3; i < n; i++) t[i] = t[i - 1] + t[i - 2] + t[i - 3];
}

static void run(void) {
    t[0] = t[1] = 0; t[2] = 1;
    kernel(t, N);
}
