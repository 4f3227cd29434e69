//! Simulated memory with, for each byte, its value and the step that stored it last. Memory that was never stored to
//! has a random value that is fixed per address.

/// The writer of bytes not stored to.
const NO_WRITER: u16 = u16::MAX;
/// Cells that a new table can hold.
const INITIAL_CELLS: usize = 1024;

/// An aligned eight-byte word.
#[derive(Debug, Clone, Copy)]
struct Cell {
    key: u64,
    value: u64,
    /// Origins of each half of the value; see [`super::machine`].
    origins: [u64; 2],
    /// For each byte, the step that stored it last. The number of steps is limited to 16 bits.
    writers: [u16; 8],
    /// The run that this cell belongs to; cells of earlier runs count as empty.
    run: u32,
}

const EMPTY: Cell = Cell { key: 0, value: 0, origins: [0; 2], writers: [NO_WRITER; 8], run: 0 };

impl Cell {
    /// Origins of `count` bytes at `offset`.
    fn of_halves(&self, offset: u32, count: u32) -> u64 {
        let low = if offset < 4 { self.origins[0] } else { 0 };
        let high = if offset + count > 4 { self.origins[1] } else { 0 };
        low | high
    }
}

/// An open-addressing hash table of the accessed cells.
#[derive(Debug)]
pub struct Shadow {
    cells: Vec<Cell>,
    used: usize,
    run: u32,
    seed: u64,
    fill: Option<u64>,
}

/// The result of a load, apart from value and writers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Loaded {
    /// Origins of the value.
    pub origins: u64,
    /// Whether it included memory not accessed before.
    pub fresh: bool,
}

impl Default for Shadow {
    fn default() -> Self {
        Self { cells: vec![EMPTY; 2 * INITIAL_CELLS], used: 0, run: 0, seed: 0, fill: None }
    }
}

impl Shadow {
    /// Clears the memory. Unknown values are random, from `seed`, or all equal to `fill`.
    pub fn reset(&mut self, seed: u64, fill: Option<u64>) {
        self.fill = fill;
        self.run = self.run.wrapping_add(1);
        if self.run == 0 {
            self.cells.fill(EMPTY);
            self.run = 1;
        }
        (self.used, self.seed) = (0, seed);
    }

    /// Sets the initial value of the eight bytes at `address`.
    pub fn initialise(&mut self, address: u64, value: u64) {
        let (shift, key) = ((address & 7) * 8, address >> 3);
        let low = self.find(key, 0);
        let keep = !(u64::MAX << shift);
        self.cells[low].value = self.cells[low].value & keep | value << shift;
        if shift > 0 {
            let high = self.find(key.wrapping_add(1) & (u64::MAX >> 3), 0);
            let keep = u64::MAX << shift;
            self.cells[high].value = self.cells[high].value & keep | value >> (64 - shift);
        }
    }

    /// Loads `bytes` (at most 64) into `lanes`. Sets `writers` to the steps that stored any of them,
    /// with the number of bytes that each stored.
    pub fn load(
        &mut self,
        address: u64,
        bytes: u32,
        origin: u64,
        lanes: &mut [u64; 8],
        writers: &mut Vec<(u16, u32)>,
    ) -> Loaded {
        writers.clear();
        let mut loaded = Loaded::default();
        let mut done = 0;
        while done < bytes {
            let at = address.wrapping_add(done.into());
            let offset = (at & 7) as u32;
            let count = (8 - offset).min(bytes - done);
            let used = self.used;
            let slot = self.find(at >> 3, origin);
            loaded.fresh |= self.used != used;
            let cell = &self.cells[slot];
            loaded.origins |= cell.of_halves(offset, count);
            put(lanes, done, cell.value >> (offset * 8), count);
            for writer in &cell.writers[offset as usize..(offset + count) as usize] {
                if *writer != NO_WRITER {
                    match writers.iter_mut().find(|(w, _)| w == writer) {
                        Some((_, bytes)) => *bytes += 1,
                        None => writers.push((*writer, 1)),
                    }
                }
            }
            done += count;
        }
        loaded
    }

    /// Stores `bytes` (at most 64) of `lanes`.
    pub fn store(&mut self, address: u64, bytes: u32, lanes: &[u64; 8], origins: u64, step: u16) {
        let mut done = 0;
        while done < bytes {
            let at = address.wrapping_add(done.into());
            let offset = (at & 7) as u32;
            let count = (8 - offset).min(bytes - done);
            let slot = self.find(at >> 3, 0);
            let cell = &mut self.cells[slot];
            let mask = low_bytes(count) << (offset * 8);
            let value = take(lanes, done, count) << (offset * 8);
            cell.value = cell.value & !mask | value & mask;
            for (half, own) in cell.origins.iter_mut().enumerate() {
                let (start, end) = (4 * half as u32, 4 * half as u32 + 4);
                if offset <= start && end <= offset + count {
                    *own = origins;
                } else if offset < end && start < offset + count {
                    *own |= origins;
                }
            }
            cell.writers[offset as usize..(offset + count) as usize].fill(step);
            done += count;
        }
    }

    /// The index of the cell `key`; creates one with `origin` if necessary.
    fn find(&mut self, key: u64, origin: u64) -> usize {
        let mask = self.cells.len() - 1;
        let mut at = splitmix64(key) as usize & mask;
        loop {
            let cell = &self.cells[at];
            if cell.run != self.run {
                break;
            }
            if cell.key == key {
                return at;
            }
            at = (at + 1) & mask;
        }
        if self.used * 2 >= self.cells.len() {
            self.grow();
            return self.find(key, origin);
        }
        self.used += 1;
        let value = self.fill.unwrap_or_else(|| splitmix64(key ^ self.seed));
        self.cells[at] =
            Cell { key, value, origins: [origin; 2], writers: [NO_WRITER; 8], run: self.run };
        at
    }

    fn grow(&mut self) {
        let room = self.cells.len() * 2;
        let old = std::mem::replace(&mut self.cells, vec![EMPTY; room]);
        for cell in old.into_iter().filter(|c| c.run == self.run) {
            let mut at = splitmix64(cell.key) as usize & (room - 1);
            while self.cells[at].run == self.run {
                at = (at + 1) & (room - 1);
            }
            self.cells[at] = cell;
        }
    }
}

/// A mask of the lowest `count` bytes.
pub fn low_bytes(count: u32) -> u64 {
    if count >= 8 { u64::MAX } else { (1 << (count * 8)) - 1 }
}

/// Writes `count` bytes of `value` at byte offset `done`.
fn put(lanes: &mut [u64; 8], done: u32, value: u64, count: u32) {
    let (lane, shift) = ((done / 8) as usize & 7, done % 8 * 8);
    let value = value & low_bytes(count);
    lanes[lane] = lanes[lane] & !(low_bytes(count) << shift) | value << shift;
    if shift / 8 + count > 8 {
        let next = (lane + 1) & 7;
        lanes[next] = value >> (64 - shift);
    }
}

/// Reads `count` bytes at byte offset `done`.
fn take(lanes: &[u64; 8], done: u32, count: u32) -> u64 {
    let (lane, shift) = ((done / 8) as usize & 7, done % 8 * 8);
    let low = lanes[lane] >> shift;
    let high = if shift / 8 + count > 8 { lanes[(lane + 1) & 7] << (64 - shift) } else { 0 };
    (low | high) & low_bytes(count)
}

/// The SplitMix64 generator's output for the state `x` (Steele, Lea, Flood 2014).
pub fn splitmix64(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(shadow: &mut Shadow, address: u64, bytes: u32) -> (u64, Vec<(u16, u32)>) {
        let (mut lanes, mut writers) = ([0; 8], Vec::new());
        shadow.load(address, bytes, 0, &mut lanes, &mut writers);
        writers.sort_unstable();
        (lanes[0] & low_bytes(bytes), writers)
    }

    #[test]
    fn the_last_writer_of_each_byte_is_known_across_cells() {
        let mut shadow = Shadow::default();
        shadow.reset(1, None);
        shadow.store(0x1005, 8, &[0x8877_6655_4433_2211, 0, 0, 0, 0, 0, 0, 0], 0, 7);
        shadow.store(0x1006, 1, &[0xff, 0, 0, 0, 0, 0, 0, 0], 0, 8);
        assert_eq!(read(&mut shadow, 0x1005, 8), (0x8877_6655_4433_ff11, vec![(7, 7), (8, 1)]));
        assert_eq!(read(&mut shadow, 0x1008, 4), (0x7766_5544, vec![(7, 4)]));
        assert_eq!(read(&mut shadow, 0x1010, 8).1, []);
    }

    #[test]
    fn unknown_memory_is_constant_within_a_run_and_differs_between_runs() {
        let mut shadow = Shadow::default();
        shadow.reset(1, None);
        let first = read(&mut shadow, 0x2003, 8).0;
        for far in 0..5000 {
            read(&mut shadow, far * 64, 8);
        }
        assert_eq!(read(&mut shadow, 0x2003, 8).0, first, "after the table has grown");
        shadow.reset(2, None);
        assert_ne!(read(&mut shadow, 0x2003, 8).0, first);
        shadow.initialise(0x2003, 0x1234);
        assert_eq!(read(&mut shadow, 0x2003, 8).0, 0x1234);
    }

    #[test]
    fn parts_of_wide_stores_are_read_back_across_lanes() {
        let mut shadow = Shadow::default();
        shadow.reset(3, None);
        let lanes = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908, 0, 0, 0, 0, 0, 0];
        shadow.store(0x3003, 16, &lanes, 0, 1);
        assert_eq!(read(&mut shadow, 0x3008, 8), (0x0c0b_0a09_0807_0605, vec![(1, 8)]));
    }
}
