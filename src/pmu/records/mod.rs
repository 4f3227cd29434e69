//! The layout of records that the kernel writes into ring buffers and perf into files.
//!
//! | module | concern |
//! |---|---|
//! | [`kind`] | kinds of records |
//! | [`raw`] | splitting bytes into records |
//! | [`format`](mod@format) | the layout of an event's samples |
//!
//! Writers and readers of records share these layouts; records are decoded in `profile`.

pub mod format;

/// Kinds of records (`enum perf_event_type` of linux/perf_event.h; perf's own begin at 64).
pub mod kind {
    /// A mapping.
    pub const MMAP: u32 = 1;
    /// Records lost.
    pub const LOST: u32 = 2;
    /// A thread's name.
    pub const COMM: u32 = 3;
    /// The end of a thread.
    pub const EXIT: u32 = 4;
    /// The kernel throttles an event.
    pub const THROTTLE: u32 = 5;
    /// The end of throttling.
    pub const UNTHROTTLE: u32 = 6;
    /// A new thread.
    pub const FORK: u32 = 7;
    /// A sample.
    pub const SAMPLE: u32 = 9;
    /// A mapping, with its protection and device or build-id.
    pub const MMAP2: u32 = 10;
    /// Samples lost.
    pub const LOST_SAMPLES: u32 = 13;
    /// The first kind of records that perf itself writes into its files.
    pub const USER_TYPE_START: u32 = 64;
}

/// A sequence of raw records, as in ring buffers and sessions (layouts: `enum perf_event_type` in linux/perf_event.h).
pub mod raw {
    /// One raw record.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Header<'a> {
        /// `PERF_RECORD_*`.
        pub kind: u32,
        /// `PERF_RECORD_MISC_*`.
        pub misc: u16,
        /// Bytes after the header.
        pub body: &'a [u8],
    }

    /// The records in `bytes`. If the last one is incomplete, its bytes (at least one) are the error at
    /// the end.
    ///
    /// ```
    /// use pmu::records::kind::LOST;
    /// use pmu::records::raw::headers;
    ///
    /// // A PERF_RECORD_LOST by hand (linux/perf_event.h): type, misc, size; id 1, 3 records lost.
    /// let mut bytes = [2u32.to_le_bytes(), [0, 0, 24, 0]].concat();
    /// bytes.extend([1u64, 3].map(u64::to_le_bytes).concat());
    /// let mut found = headers(&bytes);
    /// let record = found.next().expect("one record").expect("a whole one");
    /// assert_eq!((record.kind, record.body[8]), (LOST, 3));
    /// assert!(found.next().is_none());
    ///
    /// // The end of a truncated file is an error, not a record.
    /// assert!(headers(&bytes[..20]).next().is_some_and(|first| first.is_err()));
    /// ```
    pub fn headers(mut bytes: &[u8]) -> impl Iterator<Item = Result<Header<'_>, &[u8]>> {
        std::iter::from_fn(move || {
            let (header, rest) = match bytes.split_first_chunk::<8>() {
                None if bytes.is_empty() => return None,
                None => return Some(Err(std::mem::take(&mut bytes))),
                Some(split) => split,
            };
            let kind = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
            let misc = u16::from_le_bytes([header[4], header[5]]);
            let size = usize::from(u16::from_le_bytes([header[6], header[7]]));
            match size.checked_sub(8).and_then(|n| rest.split_at_checked(n)) {
                Some((body, after)) => {
                    bytes = after;
                    Some(Ok(Header { kind, misc, body }))
                }
                None => Some(Err(std::mem::take(&mut bytes))),
            }
        })
    }

    /// A record by hand, from linux/perf_event.h.
    #[cfg(test)]
    pub(crate) fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend(misc.to_le_bytes());
        bytes.extend((body.len() as u16 + 8).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_record_that_is_not_whole_ends_the_walk() {
            let whole = record(9, 0, &[1; 8]);
            for (rest, left) in
                [(&[][..], None), (&[9, 0, 0], Some(3)), (&[9, 0, 0, 0, 0, 0, 7, 0], Some(8))]
            {
                let bytes = [&whole, rest].concat();
                let mut found = headers(&bytes);
                assert!(found.next().is_some_and(|r| r.is_ok_and(|h| h.body == [1; 8])));
                assert_eq!(found.next().map(|r| r.unwrap_err().len()), left);
                assert!(found.next().is_none());
            }
        }
    }
}
