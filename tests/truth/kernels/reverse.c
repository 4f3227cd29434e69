/* Reverses an array in place. */
#include "driver.h"

static u8 a[2048];

KERNEL void kernel(u8 *a, int n) {
    for (int i = 0, j = n - 1; i < j; i++, j--) {
        u8 x = a[i];
        a[i] = a[j];
        a[j] = x;
    }
}

static void run(void) {
    kernel(a, 2 * N);
}
