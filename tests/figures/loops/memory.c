/* Indices, structs, chains through memory, sorting steps. Every function is one kernel of kernels.csv. */
#include <stdint.h>
#define R restrict
typedef struct { float x, y, vx, vy; } particle;
typedef struct { uint8_t kind, flags; uint16_t hits; uint32_t total; } record;
typedef struct node { struct node *next; long value; } node;

void histogram(long n, uint32_t *R a, const uint8_t *R b) { for (long i = 0; i < n; i++) a[b[i]]++; }
void histogram4(long n, uint32_t *R a, const uint8_t *R b) {
    for (long i = 0; i < n; i += 4) a[b[i]]++, a[256 + b[i + 1]]++, a[512 + b[i + 2]]++, a[768 + b[i + 3]]++;
}
void scatter(long n, int32_t *R a, const uint32_t *R b, const int32_t *R c) { for (long i = 0; i < n; i++) a[b[i]] = c[i]; }
void scatter_add(long n, double *R a, const uint32_t *R b, const double *R c) { for (long i = 0; i < n; i++) a[b[i]] += 1e-9 * c[i]; }
void gather(long n, int32_t *R a, const uint32_t *R b, const int32_t *R c) { for (long i = 0; i < n; i++) a[i] = c[b[i]]; }
double gather_sum(long n, const uint32_t *a, const double *b) { double s = 0; for (long i = 0; i < n; i++) s += b[a[i]]; return s; }
void move_particles(long n, particle *a) { for (long i = 0; i < n; i++) a[i].x += 1e-9f * a[i].vx, a[i].y += 1e-9f * a[i].vy; }
void touch_records(long n, record *a) { for (long i = 0; i < n; i++) a[i].hits++, a[i].total += a[i].kind, a[i].flags |= 4; }
void split_particles(long n, float *R a, float *R b, const particle *R c) { for (long i = 0; i < n; i++) a[i] = c[i].x, b[i] = c[i].y; }
void prefix_sum(long n, int32_t *R a, const int32_t *R b) { int32_t s = 0; for (long i = 0; i < n; i++) a[i] = s += b[i]; }
void prefix_in_memory(long n, int32_t *a) { for (long i = 1; i <= n; i++) a[i] += a[i - 1]; }
void running_max(long n, int32_t *R a, const int32_t *R b) { int32_t m = b[0]; for (long i = 0; i < n; i++) { m = b[i] > m ? b[i] : m; a[i] = m; } }
void decay(long n, double *a, double *b) { for (long i = 0; i < n; i++) a[i + 1] = a[i] * 0.5 + b[i]; }
void total_in_memory(long n, long *a, const long *b) { for (long i = 0; i < n; i++) *a += b[i]; }
void lz_copy_bytes(long n, volatile uint8_t *a) { for (long i = 0; i < n; i++) a[i + 8] = a[i]; }
void lz_copy_words(long n, uint64_t *a) { uint64_t *to = a + 2; for (long i = 0; i < n; i++) to[i] = a[i]; }
void insertion(long n, int32_t *R a, int32_t *R b) {
    int32_t key = b[0]--; long j = n;
    while (a[j - 1] > key) a[j] = a[j - 1], j--;
    a[j] = key;
}
long partition(long n, int32_t *a) {
    long low = 0;
    for (long i = 0; i < n; i++) { int32_t x = a[i]; a[i] = a[low]; a[low] = x; low += x < 0; }
    return low;
}
void bubble(long n, int32_t *a) {
    int32_t x = a[0];
    for (long i = 1; i <= n; i++) { int32_t y = a[i]; a[i - 1] = x < y ? x : y; x = x < y ? y : x; }
    a[n] = x;
}
void merge(long n, int32_t *R a, const int32_t *R b, const int32_t *R c) {
    for (long i = 0; i < n; i++) { int32_t x = *b, y = *c; int first = x <= y; a[i] = first ? x : y; b += first; c += !first; }
}
long filter(long n, int32_t *R a, const int32_t *R b) { long k = 0; for (long i = 0; i < n; i++) { a[k] = b[i]; k += b[i] > 1000; } return k; }
void set_bits(long n, uint64_t *R a, const uint32_t *R b) { for (long i = 0; i < n; i++) a[b[i] >> 6] |= 1ul << (b[i] & 63); }
void ring(long n, long *R a, const long *R b) { unsigned long head = b[0]; for (long i = 0; i < n; i++, head++) a[head & 255] = b[i] ^ (long)head; }
long chase(long n, const node *a) { while (n--) a = a->next; return (long)a; }
long list_sum(long n, const node *a) { long s = 0; while (n--) s += a->value, a = a->next; return s; }
long search(long n, const int32_t *a, const int32_t *b) {
    unsigned long at = 0; int32_t key = b[0];
    while (n--) at = (2 * at + 1 + (a[at] < key)) & 511;
    return (long)at;
}
long count_runs(long n, const uint8_t *a) { long runs = 0; for (long i = 0; i < n; i++) runs += a[i] != a[i + 1]; return runs; }
/* Several basic blocks. */
long count_capitals(long n, const char *a, long *b) {
    long k = 0;
    for (long i = 0; i < n; i++) if (a[i] == 'Q') { k++; b[k & 63] = i; }
    return k;
}
void run_lengths(long n, uint8_t *R a, const uint8_t *R b) {
    uint8_t *out = a; long run = 1;
    for (long i = 1; i <= n; i++) {
        if (b[i] == b[i - 1] && run < 4) { run++; continue; }
        *out++ = b[i - 1], *out++ = (uint8_t)run, run = 1;
    }
}
