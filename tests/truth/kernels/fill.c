/* Fills an array through a volatile pointer (no call of memset). */
#include "driver.h"

static u8 a[1024];

KERNEL void kernel(volatile u8 *a, u8 x, int n) {
    for (int i = 0; i < n; i++) a[i] = x;
}

static void run(void) {
    kernel(a, 7, N);
}
