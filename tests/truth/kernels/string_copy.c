/* Copies a string. */
#include "driver.h"

static char text[1024], copy[1024];

KERNEL void kernel(volatile char *to, volatile char *from) {
    while ((*to++ = *from++)) {}
}

static void run(void) {
    for (int i = 0; i < N; i++) text[i] = 'a';
    kernel(copy, text);
}
