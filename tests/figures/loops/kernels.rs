//! Kernels in Rust, over slices as idiomatic code has them. Every function is one kernel of kernels.csv.
#![crate_type = "cdylib"]
use std::slice::{from_raw_parts as read, from_raw_parts_mut as write};

macro_rules! kernel {
    ($name:ident, $n:ident $(, $arg:ident: $kind:ident $type:ty)*; $body:expr) => {
        #[no_mangle]
        pub unsafe extern "C" fn $name($n: usize $(, $arg: *mut $type)*) -> u64 {
            $(let $arg = $kind($arg, $n);)*
            $body
        }
    };
}
kernel!(r_axpy, n, y: write f64, x: read f64; { for (y, x) in y.iter_mut().zip(x) { *y += 1e-9 * x } 0 });
kernel!(r_dot, n, x: read f64, y: read f64; x.iter().zip(y).map(|(a, b)| a * b).sum::<f64>().to_bits());
kernel!(r_blur, n, a: write f32, b: read f32; { for (a, w) in a.iter_mut().zip(b.windows(3)) { *a = (w[0] + w[1] + w[2]) / 3.0 } 0 });
kernel!(r_squares, n, a: read u32; a.iter().fold(0u64, |s, &x| s + x as u64 * x as u64));
kernel!(r_prefix, n, a: write u64, b: read u64; { let mut s = 0u64; for (a, b) in a.iter_mut().zip(b) { s = s.wrapping_add(*b); *a = s } 0 });
kernel!(r_fnv, n, a: read u8; a.iter().fold(0xcbf2_9ce4_8422_2325u64, |h, &x| (h ^ x as u64).wrapping_mul(0x100_0000_01b3)));
kernel!(r_histogram, n, a: write u32, b: read u8; { let a = &mut *(a.as_mut_ptr() as *mut [u32; 256]); for &x in b { a[x as usize] = a[x as usize].wrapping_add(1) } 0 });
kernel!(r_upper, n, a: write u8, b: read u8; { for (a, b) in a.iter_mut().zip(b) { *a = b.to_ascii_uppercase() } 0 });
kernel!(r_clamp, n, a: write f32, b: read f32; { for (a, b) in a.iter_mut().zip(b) { *a = b.clamp(1.2, 1.8) } 0 });
kernel!(r_dequant, n, a: write f32, b: read i8; { for (a, b) in a.iter_mut().zip(b) { *a = *b as f32 * 0.05 } 0 });
kernel!(r_max, n, a: read i64; a.iter().fold(i64::MIN, |m, &x| m.max(x)) as u64);
kernel!(r_count, n, a: read u8; a.iter().filter(|&&x| x == b'e').count() as u64);
kernel!(r_saturate, n, a: write i16, b: read i16, c: read i16; { for (a, (b, c)) in a.iter_mut().zip(b.iter().zip(c)) { *a = b.saturating_add(*c) } 0 });
kernel!(r_rotate, n, a: write u64, b: read u64; { for (a, b) in a.iter_mut().zip(b) { *a = a.rotate_left(7) ^ b } 0 });
kernel!(r_smooth, n, a: write f64; { let mut last = 1.0; for x in a { last = 0.9 * last + 0.1 * *x; *x = last } 0 });
kernel!(r_scatter, n, a: write u32, b: read u32; { let a = &mut *(a.as_mut_ptr() as *mut [u32; 512]); for (i, &x) in b.iter().enumerate() { a[(x & 511) as usize] = i as u32 } 0 });
kernel!(r_pairs, n, a: write (u32, u32); { for p in a { if p.0 > p.1 { std::mem::swap(&mut p.0, &mut p.1) } } 0 });
kernel!(r_sum_checked, n, a: read u8, b: read u64; { let mut s = 0u64; for &x in a { s = s.wrapping_add(b[(x & 63) as usize]) } s });
