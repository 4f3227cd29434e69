/* Running sums in place. */
#include "driver.h"

static long a[1024];

KERNEL void kernel(long *a, int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) {
        sum += a[i];
        a[i] = sum;
    }
}

static void run(void) {
    kernel(a, N);
}
