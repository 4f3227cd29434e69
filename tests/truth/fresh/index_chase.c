/* Each index names the next one. */
#include "../kernels/driver.h"

static u32 follower[1024];

KERNEL u32 kernel(const u32 *follower, u32 i, int n) {
    while (n--) i = follower[i];
    return i;
}

static void run(void) {
    for (u32 i = 0; i < 1024; i++) follower[i] = (i + 37) & 1023;
    sink = kernel(follower, 0, N);
}
