/* Hashes, text, bytes, bits. Every function is one kernel of kernels.csv. */
#include <stdint.h>
#include <string.h>
#define R restrict

uint32_t fnv1a(long n, const uint8_t *a) { uint32_t h = 2166136261u; for (long i = 0; i < n; i++) h = (h ^ a[i]) * 16777619u; return h; }
uint32_t djb2(long n, const uint8_t *a) { uint32_t h = 5381; for (long i = 0; i < n; i++) h = h * 33 + a[i]; return h; }
uint32_t murmur(long n, const uint32_t *a) {
    uint32_t h = 7;
    for (long i = 0; i < n; i++) {
        uint32_t k = a[i] * 0xcc9e2d51u; k = (k << 15 | k >> 17) * 0x1b873593u;
        h ^= k, h = (h << 13 | h >> 19) * 5 + 0xe6546b64u;
    }
    return h;
}
uint32_t crc_table(long n, const uint8_t *a, const uint32_t *b) { uint32_t c = ~0u; for (long i = 0; i < n; i++) c = b[(c ^ a[i]) & 255] ^ c >> 8; return c; }
uint32_t adler(long n, const uint8_t *a) { uint32_t s = 1, t = 0; for (long i = 0; i < n; i++) s += a[i], t += s; return t << 16 | s; }
void xorshift(long n, uint64_t *a) { uint64_t x = 88172645463325252ul; for (long i = 0; i < n; i++) { x ^= x << 13, x ^= x >> 7, x ^= x << 17; a[i] = x; } }
void lcg(long n, uint32_t *a) { uint64_t x = 1; for (long i = 0; i < n; i++) { x = x * 6364136223846793005ul + 1442695040888963407ul; a[i] = x >> 33; } }
uint64_t mix64(long n, const uint64_t *a) {
    uint64_t h = 0;
    for (long i = 0; i < n; i++) { uint64_t x = a[i] * 0x9e3779b97f4a7c15ul; x ^= x >> 32; h += x * 0xbf58476d1ce4e5b9ul; }
    return h;
}
uint64_t multiply_high(long n, const uint64_t *a) { uint64_t h = 1; for (long i = 0; i < n; i++) { unsigned __int128 p = (unsigned __int128)(h ^ a[i]) * 0x9e3779b97f4a7c15ul; h = (uint64_t)p ^ (uint64_t)(p >> 64); } return h; }
long strlen_like(long n, char *a) { a[n] = 0; const char *p = a; while (*p) p++; a[n] = 'x'; return p - a; }
long memchr_like(long n, uint8_t *a) { uint8_t old = a[n]; a[n] = 0xff; long i = 0; for (; i <= n; i++) if (a[i] == 0xff) break; a[n] = old; return i; }
long compare(long n, const uint8_t *a, uint8_t *b) { b[n] = a[n] + 1; long i = 0; while (a[i] == b[i]) i++; b[n] = a[n]; return i; }
long word_scan(long n, uint64_t *a) {
    a[n] = 0x6161006161616161ul; uint64_t *p = a;
    while (!((*p - 0x0101010101010101ul) & ~*p & 0x8080808080808080ul)) p++;
    a[n] = 0x6161616161616161ul; return p - a;
}
void to_lower(long n, uint8_t *R a, const uint8_t *R b) { for (long i = 0; i < n; i++) { uint8_t c = b[i]; a[i] = c >= 'A' && c <= 'Z' ? c | 32 : c; } }
long count_lines(long n, const char *a) { long k = 0; for (long i = 0; i < n; i++) k += a[i] == ' '; return k; }
long utf8_count(long n, const signed char *a) { long k = 0; for (long i = 0; i < n; i++) k += a[i] > -65; return k; }
long parse_digits(long n, const char *a) { long v = 0; for (long i = 0; i < n; i++) v = v * 10 + (a[i] - '0'); return v; }
void hex_encode(long n, char *R a, const uint8_t *R b) { for (long i = 0; i < n; i++) a[2 * i] = "0123456789abcdef"[b[i] >> 4], a[2 * i + 1] = "0123456789abcdef"[b[i] & 15]; }
void base64(long n, char *R a, const uint8_t *R b, const char *R c) {
    for (long i = 0; i < n; i++) {
        uint32_t w = b[3 * i] << 16 | b[3 * i + 1] << 8 | b[3 * i + 2];
        a[4 * i] = c[w >> 18], a[4 * i + 1] = c[w >> 12 & 63], a[4 * i + 2] = c[w >> 6 & 63], a[4 * i + 3] = c[w & 63];
    }
}
void saturating_add(long n, uint8_t *R a, const uint8_t *R b, const uint8_t *R c) { for (long i = 0; i < n; i++) { int s = b[i] + c[i]; a[i] = s > 255 ? 255 : s; } }
void clamp_i16(long n, int16_t *R a, const int32_t *R b) { for (long i = 0; i < n; i++) { int32_t x = b[i] >> 8; a[i] = x > 32767 ? 32767 : x < -32768 ? -32768 : x; } }
void blend(long n, uint8_t *R a, const uint8_t *R b, const uint8_t *R c) { for (long i = 0; i < n; i++) a[i] = (b[i] * 77 + c[i] * 179 + 128) >> 8; }
void grey(long n, uint8_t *R a, const uint8_t *R b) { for (long i = 0; i < n; i++) a[i] = (b[3 * i] * 77 + b[3 * i + 1] * 150 + b[3 * i + 2] * 29) >> 8; }
long popcount(long n, const uint64_t *a) {
    long k = 0;
    for (long i = 0; i < n; i++) {
        uint64_t x = a[i]; x -= x >> 1 & 0x5555555555555555ul; x = (x & 0x3333333333333333ul) + (x >> 2 & 0x3333333333333333ul);
        k += ((x + (x >> 4)) & 0x0f0f0f0f0f0f0f0ful) * 0x0101010101010101ul >> 56;
    }
    return k;
}
void interleave(long n, uint32_t *R a, const uint16_t *R b) {
    for (long i = 0; i < n; i++) { uint32_t x = b[i]; x = (x | x << 8) & 0xff00ff; x = (x | x << 4) & 0xf0f0f0f; x = (x | x << 2) & 0x33333333; a[i] = (x | x << 1) & 0x55555555; }
}
void swap_bytes(long n, uint32_t *R a, const uint32_t *R b) { for (long i = 0; i < n; i++) a[i] = __builtin_bswap32(b[i]); }
void xor_stream(long n, uint64_t *R a, const uint64_t *R b) { for (long i = 0; i < n; i++) a[i] ^= b[i]; }
void shift_bits(long n, uint32_t *R a, const uint32_t *R b) { for (long i = 0; i < n; i++) a[i] = b[i + 1] << 3 | b[i] >> 29; }
long modulo(long n, const uint32_t *a, const uint32_t *b) { uint32_t m = b[0] | 1; long s = 0; for (long i = 0; i < n; i++) s += a[i] % m; return s; }
long mean_abs(long n, const int32_t *a) { long s = 0; for (long i = 0; i < n; i++) s += a[i] < 0 ? -(long)a[i] : a[i]; return s; }
void delta_decode(long n, uint32_t *R a, const uint8_t *R b) { uint32_t v = 0; for (long i = 0; i < n; i++) { v += (b[i] >> 1) ^ -(b[i] & 1); a[i] = v; } }
