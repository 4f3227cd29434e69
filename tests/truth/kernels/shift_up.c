/* Moves an array up by one from its end, in place. */
#include "driver.h"

static u16 a[1024];

KERNEL void kernel(volatile u16 *a, int n) {
    for (int i = n; i > 0; i--) a[i] = a[i - 1];
}

static void run(void) {
    kernel(a, N);
}
