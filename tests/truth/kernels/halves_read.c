/* A store of 64 bits, and two loads of 32 within it. */
#include "driver.h"

union word { u32 half[2]; u64 whole; };
static union word w;

KERNEL u64 kernel(volatile union word *w, u64 x, int n) {
    for (int i = 0; i < n; i++) {
        w->whole = x;
        x += w->half[0] ^ w->half[1];
    }
    return x;
}

static void run(void) {
    sink = kernel(&w, 1, N);
}
