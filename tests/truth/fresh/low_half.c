/* A word is stored, its low half is loaded. */
#include "../kernels/driver.h"

static u64 cell;

KERNEL u64 kernel(volatile u64 *cell, u64 x, int n) {
    for (int i = 0; i < n; i++) {
        *cell = x;
        x = *(volatile u32 *)cell * 5ul;
    }
    return x;
}

static void run(void) { sink = kernel(&cell, next(), N); }
