//! Reads the frequency of the time-stamp counter as measured by the kernel.
//!
//! The page of any perf event has the kernel's factors from counter to nanoseconds (the comments on
//! `struct perf_event_mmap_page` in linux/perf_event.h): ns = cycles × time_mult / 2^time_shift,
//! so a second has 10⁹ × 2^time_shift / time_mult cycles.

use perf_event::Builder;
use perf_event::events::Raw;
use std::os::fd::{AsRawFd, RawFd};

/// The beginning of the page as 32-bit words, up to `time_mult`.
type Page = [u32; 14];
/// Indexes of its fields.
const LOCK: usize = 2;
const CAPABILITIES: usize = 10;
const PMC_WIDTH_AND_TIME_SHIFT: usize = 12;
const TIME_MULT: usize = 13;
/// Bit of the capabilities: the kernel's clock is this counter, and the factors are valid. It is
/// not set where the hypervisor's clock is used, or the counter is not constant.
const CAP_USER_TIME: u32 = 1 << 3;

/// The frequency of the time stamp counter in hertz, from the page of a software event;
/// `None` if the kernel opens none or uses another clock, or the processor has no such counter.
pub fn tsc_hz() -> Option<f64> {
    if !cfg!(target_arch = "x86_64") {
        return None;
    }
    const DUMMY: u64 = 9;
    const PERF_TYPE_SOFTWARE: u32 = 1;
    let mut builder = Builder::new(Raw::new(DUMMY));
    builder.attrs_mut().type_ = PERF_TYPE_SOFTWARE;
    let event = builder.exclude_kernel(true).exclude_hv(true).build().ok()?;
    frequency(&read(event.as_raw_fd())?)
}

/// As [`tsc_hz`], otherwise measured against the kernel's clock for 20 ms.
pub fn tsc_hz_here() -> Option<f64> {
    tsc_hz().or_else(measured)
}

/// The time stamp counter and nanoseconds of `CLOCK_MONOTONIC` at one moment, within some 50 ns: the shortest of
/// several attempts. `None` where there is no such counter.
#[cfg(target_arch = "x86_64")]
pub fn ticks_and_monotonic() -> Option<(u64, u64)> {
    use nix::time::{ClockId, clock_gettime};
    // SAFETY: as in `measured`.
    let ticks = || unsafe { std::arch::x86_64::_rdtsc() };
    let attempt = |_| {
        let before = ticks();
        let time = clock_gettime(ClockId::CLOCK_MONOTONIC).ok()?;
        let took = ticks().checked_sub(before)?;
        let ns = u64::try_from(time.tv_sec()).ok()? * 1_000_000_000;
        Some((took, before + took / 2, ns + u64::try_from(time.tv_nsec()).ok()?))
    };
    let (_, ticks, ns) = (0..20).filter_map(attempt).min()?;
    Some((ticks, ns))
}

/// `None`: there is no such counter on other architectures.
#[cfg(not(target_arch = "x86_64"))]
pub fn ticks_and_monotonic() -> Option<(u64, u64)> {
    None
}

#[cfg(target_arch = "x86_64")]
fn measured() -> Option<f64> {
    use std::time::{Duration, Instant};
    // SAFETY: every x86-64 processor has the instruction; if the kernel forbids it (prctl PR_SET_TSC),
    // the clocks of std, which use the vdso, do not work either.
    let read = || (Instant::now(), unsafe { std::arch::x86_64::_rdtsc() });
    let begin = read();
    std::thread::sleep(Duration::from_millis(20));
    let end = read();
    let ticks = end.1.checked_sub(begin.1)? as f64;
    Some(ticks / (end.0 - begin.0).as_secs_f64())
}

#[cfg(not(target_arch = "x86_64"))]
fn measured() -> Option<f64> {
    None
}

fn frequency(page: &Page) -> Option<f64> {
    let (shift, mult) = (page[PMC_WIDTH_AND_TIME_SHIFT] >> 16, page[TIME_MULT]);
    let valid = page[CAPABILITIES] & CAP_USER_TIME != 0 && mult > 0 && shift < 64;
    valid.then(|| 1e9 * 2f64.powi(shift as i32) / f64::from(mult))
}

/// A consistent copy of the page of the event `fd`.
fn read(fd: RawFd) -> Option<Page> {
    let size = usize::try_from(nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok()??);
    let size = size.ok()?;
    // SAFETY: a new mapping at an address that the kernel chooses; nothing else uses it.
    let page =
        unsafe { libc::mmap(std::ptr::null_mut(), size, libc::PROT_READ, libc::MAP_SHARED, fd, 0) };
    if page == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the mapping is page-aligned, longer than `Page`, and any bits are valid; the kernel
    // writes to it, hence volatile.
    let copy = || unsafe { page.cast::<Page>().read_volatile() };
    // The kernel increments `lock` before and after a change; changes are rare.
    let pair = std::iter::repeat_with(|| (copy(), copy())).take(100);
    let found = pair.map(|(a, b)| (a == b && a[LOCK] % 2 == 0).then_some(a)).find_map(|p| p);
    // SAFETY: unmaps what was mapped above; nothing refers to it any more.
    unsafe { libc::munmap(page, size) };
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_factors_give_the_frequency() {
        // 10⁹ × 2³¹ / 894 784 853 = 2.4 GHz: what Linux computes for a TSC of 2400 MHz.
        let mut page: Page = [0; 14];
        page[CAPABILITIES] = 0b1_1010;
        page[PMC_WIDTH_AND_TIME_SHIFT] = 31 << 16 | 48;
        page[TIME_MULT] = 894_784_853;
        let hz = frequency(&page).expect("a frequency");
        assert!((hz - 2.4e9).abs() < 10.0, "{hz}");
        // Without the capability the factors mean nothing.
        page[CAPABILITIES] = 0b1_0010;
        assert_eq!(frequency(&page), None);
    }

    #[test]
    fn this_machine_names_a_plausible_frequency_or_none() {
        match tsc_hz() {
            Some(hz) => assert!((1e8..1e11).contains(&hz), "{hz}"),
            None => eprintln!("skipped: the kernel does not report the frequency of the TSC here"),
        }
    }
}
