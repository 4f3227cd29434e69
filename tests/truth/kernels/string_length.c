/* The length of a string. */
#include "driver.h"

static char text[1024];

KERNEL u64 kernel(volatile char *s) {
    u64 n = 0;
    while (s[n]) n++;
    return n;
}

static void run(void) {
    for (int i = 0; i < N; i++) text[i] = 'a';
    sink = kernel(text);
}
