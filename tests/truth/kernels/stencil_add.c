/* A[i] = A[i - 1] + B[i] over int. */
#include "driver.h"

static int a[1024], b[1024];

KERNEL void kernel(int *a, int *b, int n) {
    for (int i = 1; i < n; i++) a[i] = a[i - 1] + b[i];
}

static void run(void) {
    kernel(a, b, N);
}
