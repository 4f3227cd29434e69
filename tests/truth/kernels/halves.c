/* Two stores of 32 bits, and a load of 64 over both. */
#include "driver.h"

union word { u32 half[2]; u64 whole; };
static union word w;

KERNEL u64 kernel(volatile union word *w, u64 x, int n) {
    for (int i = 0; i < n; i++) {
        w->half[0] = (u32)x;
        w->half[1] = (u32)(x >> 32);
        x = w->whole + 1;
    }
    return x;
}

static void run(void) {
    sink = kernel(&w, 1, N);
}
