//! Readings of a measurement of unknown length: at most [`MAX_FRAMES`] frames, of equal length.
//!
//! A frame is one flat row of counts (of every group and every CPU or thread). When the maximum is
//! reached, adjacent frames are merged, and from then on each frame takes twice as many readings.

/// Maximum number of frames; merging halves it. The jackknife needs 8 or more.
pub const MAX_FRAMES: usize = 64;

/// Frames of counts.
#[derive(Debug, Clone, Default)]
pub struct Frames {
    frames: Vec<Vec<u64>>,
    stride: u32,
    filled: u32,
}

impl Frames {
    /// No frames.
    pub fn new() -> Self {
        Self { frames: Vec::new(), stride: 1, filled: 0 }
    }

    /// Adds the counts since the previous reading; whether frames were merged.
    pub fn push(&mut self, delta: &[u64]) -> bool {
        match self.frames.last_mut() {
            Some(last) if self.filled < self.stride => add(last, delta),
            _ => {
                self.frames.push(delta.to_vec());
                self.filled = 0;
            }
        }
        self.filled += 1;
        if self.frames.len() < MAX_FRAMES || self.filled < self.stride {
            return false;
        }
        self.merge();
        true
    }

    /// Number of frames.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Merges adjacent frames; the next frames take twice as many readings.
    pub fn merge(&mut self) {
        let old = std::mem::take(&mut self.frames);
        let mut old = old.into_iter();
        while let Some(mut first) = old.next() {
            if let Some(second) = old.next() {
                add(&mut first, &second);
            }
            self.frames.push(first);
        }
        self.stride = self.stride.saturating_mul(2);
        self.filled = self.stride;
    }

    /// Readings come half as often from now on: frames take half as many.
    pub fn halve_rate(&mut self) {
        self.stride = (self.stride / 2).max(1);
        self.filled = self.stride;
    }

    /// The frames, oldest first. A last frame shorter than half of the others is merged with the one
    /// before, because frames are assumed to be of equal length.
    pub fn finish(mut self) -> Vec<Vec<u64>> {
        if self.frames.len() > 1
            && self.filled * 2 < self.stride
            && let Some(rest) = self.frames.pop()
            && let Some(last) = self.frames.last_mut()
        {
            add(last, &rest);
        }
        self.frames
    }
}

fn add(to: &mut [u64], from: &[u64]) {
    for (t, f) in to.iter_mut().zip(from) {
        *t = t.saturating_add(*f);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_and_never_more_than_64_frames_are_kept() {
        for n in [1u64, 7, 63, 64, 65, 127, 128, 1000, 12_345] {
            let mut frames = Frames::new();
            for i in 0..n {
                frames.push(&[i, 1]);
            }
            let frames = frames.finish();
            assert!(frames.len() <= MAX_FRAMES);
            assert!(frames.len() >= 31.min(n as usize), "{n} readings gave {}", frames.len());
            assert_eq!(frames.iter().map(|f| f[1]).sum::<u64>(), n);
            assert_eq!(frames.iter().map(|f| f[0]).sum::<u64>(), n * (n - 1) / 2);
        }
    }

    #[test]
    fn frames_are_of_equal_length_but_for_the_last() {
        let mut frames = Frames::new();
        for _ in 0..1000 {
            frames.push(&[1]);
        }
        let frames = frames.finish();
        let (last, all) = frames.split_last().expect("frames");
        assert!(all.iter().all(|f| f[0] == all[0][0]));
        assert!(last[0] * 2 >= all[0][0]);
    }
}
