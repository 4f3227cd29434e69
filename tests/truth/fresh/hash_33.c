/* Bernstein's hash: times 33, plus a byte. */
#include "../kernels/driver.h"

static u8 text[1024];

KERNEL u32 kernel(const u8 *text, int n) {
    u32 h = 5381;
    for (int i = 0; i < n; i++) h = h * 33 + text[i];
    return h;
}

static void run(void) {
    for (int i = 0; i < 1024; i++) text[i] = (u8)next();
    sink = kernel(text, N);
}
