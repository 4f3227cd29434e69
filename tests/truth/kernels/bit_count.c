/* Bits set, by clearing the lowest. */
#include "driver.h"

KERNEL int kernel(u64 x) {
    int count = 0;
    while (x) {
        x &= x - 1;
        count++;
    }
    return count;
}

static void run(void) {
    for (int i = 0; i < 8; i++) sink = kernel(~(u64)i + 0 * N);
}
