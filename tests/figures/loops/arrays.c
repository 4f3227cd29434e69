/* Streams and stencils. Every function is one kernel of kernels.csv: the length first, then up to four arrays. */
#include <stdint.h>
#define R restrict

void copy_f64(long n, double *R a, const double *R b) { for (long i = 0; i < n; i++) a[i] = b[i]; }
void scale_f64(long n, double *R a, const double *R b) { for (long i = 0; i < n; i++) a[i] = 3.0 * b[i]; }
void triad(long n, double *R a, const double *R b, const double *R c) { for (long i = 0; i < n; i++) a[i] = b[i] + 3.0 * c[i]; }
void daxpy(long n, double *R a, const double *R b) { for (long i = 0; i < n; i++) a[i] += 1e-9 * b[i]; }
/* The compiler may not assume that the arrays are apart. */
void add_i32(long n, int32_t *a, const int32_t *b, const int32_t *c) { for (long i = 0; i < n; i++) a[i] = b[i] + c[i]; }
void fill_ramp(long n, int32_t *a) { for (long i = 0; i < n; i++) a[i] = (int32_t)i * 5 + 1; }
void stencil3(long n, double *R a, const double *R b) { for (long i = 0; i < n; i++) a[i] = 0.25 * b[i] + 0.5 * b[i + 1] + 0.25 * b[i + 2]; }
void stencil5_2d(long n, float *R a, const float *R b) {
    const float *up = b + 1, *down = b + 2064, *row = b + 1032;
    for (long i = 0; i < n; i++) a[i] = 0.2f * (up[i] + down[i] + row[i] + row[i + 1] + row[i + 2]);
}
void gauss_seidel(long n, double *a) { for (long i = 1; i <= n; i++) a[i] = 0.25 * a[i - 1] + 0.5 * a[i] + 0.25 * a[i + 1]; }
void matmul_rows(long n, double *R a, const double *R b, const double *R c, const double *R d) {
    double x = d[0], y = d[1];
    for (long i = 0; i < n; i++) a[i] = b[i] * x + c[i] * y;
}
void matmul_row4(long n, float *R a, const float *R b, const float *R x) {
    float x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
    const float *p = b, *q = b + 528, *r = b + 1056, *s = b + 1584;
    for (long j = 0; j < n; j++) a[j] += 1e-9f * (x0 * p[j] + x1 * q[j] + x2 * r[j] + x3 * s[j]);
}
double dot(long n, const double *a, const double *b) { double s = 0; for (long i = 0; i < n; i++) s += a[i] * b[i]; return s; }
double sum_f64(long n, const double *a) { double s = 0; for (long i = 0; i < n; i++) s += a[i]; return s; }
double norm2(long n, const double *a) { double s = 0; for (long i = 0; i < n; i++) s += a[i] * a[i]; return s; }
float max_f32(long n, const float *a) { float m = a[0]; for (long i = 1; i <= n; i++) m = a[i] > m ? a[i] : m; return m; }
int32_t min_i32(long n, const int32_t *a) { int32_t m = a[0]; for (long i = 1; i <= n; i++) m = a[i] < m ? a[i] : m; return m; }
long argmin(long n, const int32_t *a) {
    int32_t m = a[0]; long at = 0;
    for (long i = 1; i <= n; i++) { at = a[i] < m ? i : at; m = a[i] < m ? a[i] : m; }
    return at;
}
void divide(long n, double *R a, const double *R b, const double *R c) { for (long i = 0; i < n; i++) a[i] = b[i] / c[i]; }
double harmonic(long n, const double *a) { double s = 1; for (long i = 0; i < n; i++) s = a[i] / (s + 1.0); return s; }
void roots(long n, double *R a, const double *R b) { for (long i = 0; i < n; i++) a[i] = __builtin_sqrt(b[i]); }
void distance(long n, float *R a, const float *R b, const float *R c) { for (long i = 0; i < n; i++) a[i] = __builtin_sqrtf(b[i] * b[i] + c[i] * c[i]); }
void complex_multiply(long n, double *R a, const double *R b, const double *R c) {
    for (long i = 0; i < n; i++) {
        double re = b[2 * i] * c[2 * i] - b[2 * i + 1] * c[2 * i + 1];
        a[2 * i + 1] = b[2 * i] * c[2 * i + 1] + b[2 * i + 1] * c[2 * i];
        a[2 * i] = re;
    }
}
void fir5(long n, float *R a, const float *R b, const float *R h) {
    float h0 = h[0], h1 = h[1], h2 = h[2], h3 = h[3], h4 = h[4];
    for (long i = 0; i < n; i++) a[i] = h0 * b[i] + h1 * b[i + 1] + h2 * b[i + 2] + h3 * b[i + 3] + h4 * b[i + 4];
}
void iir1(long n, double *R a, const double *R b) { double y = 1; for (long i = 0; i < n; i++) a[i] = y = 0.9 * y + 0.1 * b[i]; }
void biquad(long n, double *R a, const double *R b) {
    double s1 = 1, s2 = 1;
    for (long i = 0; i < n; i++) {
        double y = 0.2 * b[i] + s1;
        s1 = 0.3 * b[i] + 0.4 * y + s2, s2 = 0.2 * b[i] - 0.1 * y, a[i] = y;
    }
}
double horner(long n, const double *a) { double s = 1; for (long i = 0; i < n; i++) s = s * 0.5 + a[i]; return s; }
void clamp_f32(long n, float *R a, const float *R b) {
    for (long i = 0; i < n; i++) { float x = b[i]; x = x < 1.25f ? 1.25f : x; a[i] = x > 1.75f ? 1.75f : x; }
}
void dequantise(long n, float *R a, const int8_t *R b) { for (long i = 0; i < n; i++) a[i] = 0.03f * (b[i] - 3); }
void quantise(long n, int8_t *R a, const float *R b) { for (long i = 0; i < n; i++) a[i] = (int8_t)(b[i] * 40.0f); }
void reverse(long n, int32_t *a) { int32_t *p = a, *q = a + 2 * n - 1; while (p < q) { int32_t t = *p; *p++ = *q; *q-- = t; } }
