/* Several counters in memory. */
#include "driver.h"

static volatile u32 all, odd;
static u8 text[1024];

KERNEL void kernel(u8 *text, int n) {
    for (int i = 0; i < n; i++) {
        all++;
        odd += text[i] & 1;
    }
}

static void run(void) {
    for (int i = 0; i < 1024; i++) text[i] = (u8)next();
    kernel(text, N);
}
