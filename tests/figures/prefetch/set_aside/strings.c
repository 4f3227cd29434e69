// Gathers strings by a list of numbers: the pointer misses, and so does the string.
#include "../common.h"
enum { N = 1 << 21, STRINGS = 1 << 22, LENGTH = 32 };

__attribute__((noipa)) uint64_t kernel(char *const *strings, const uint32_t *list, long n) {
    uint64_t sum = 0;
    for (long i = 0; i < n; i++) {
        AHEAD(INNER_DIST, &strings[list[i + 2 * INNER_DIST]]);
        if (INNER_DIST) AHEAD(INNER_DIST, strings[list[i + INNER_DIST]]);
        const char *one = strings[list[i]];
        sum += one[0] * 31 + one[1] * 7 + one[2];
    }
    return sum;
}

int main(void) {
    char **strings = array((size_t)STRINGS * sizeof *strings), *text = array((size_t)STRINGS * LENGTH);
    uint32_t *list = array((N + 16384) * sizeof *list);
    for (long i = 0; i < STRINGS; i++) {
        strings[i] = text + (size_t)(draw() % STRINGS) * LENGTH;
        memcpy(text + (size_t)i * LENGTH, "a string", 9);
    }
    for (long i = 0; i < N; i++) list[i] = draw() % STRINGS;
    uint64_t sum = 0;
    REPEAT(8, sum += kernel(strings, list, N));
    report(sum);
}
