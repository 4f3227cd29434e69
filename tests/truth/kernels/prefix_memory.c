/* Running sums, each read back from memory. */
#include "driver.h"

static long a[1024];

KERNEL void kernel(long *a, int n) {
    for (int i = 1; i < n; i++) a[i] += a[i - 1];
}

static void run(void) {
    kernel(a, N);
}
