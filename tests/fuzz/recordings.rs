//! Everything that reads recordings from outside, fed with the same bytes: shared by the fuzz
//! target and by the ordinary tests.

use pmu::records::format::SampleFormat;
use profile::event::Event;
use profile::record::{self, Record};
use profile::text::{self, Kind};
use profile::{perfdata, sample};

/// Feeds `data` to all of them.
///
/// # Panics
/// More comes out than there is, or an error says nothing.
pub fn feed(data: &[u8]) {
    whole(data);
    for mode in [16, 104] {
        whole(&[b"PERFILE2", &u64::to_le_bytes(mode)[..], data].concat());
    }
    parts(data);
    texts(data);
}

/// As text of other tools.
fn texts(data: &[u8]) {
    let _ = text::recognise(data);
    for kind in [Kind::PerfScript, Kind::Lackey] {
        let Ok(stream) = text::parse(data, "a text", kind) else { continue };
        let mut branches = 0;
        let read = stream.records.each(&mut |record| {
            if let Record::Sample { event, sample } = record {
                assert!(event < stream.about.events.len());
                branches += sample.branches.len();
            }
        });
        assert!(read.is_ok() && branches <= data.len());
    }
}

/// As a file.
fn whole(data: &[u8]) {
    match perfdata::parse(data, "a file") {
        Ok(recording) => {
            assert!(!recording.events.is_empty());
            let compressed = data.windows(4).any(|w| w == [0x28, 0xb5, 0x2f, 0xfd]);
            assert!(compressed || recording.records.len() <= data.len() / 8);
            for record in &recording.records {
                let Record::Sample { event, .. } = record else { continue };
                assert!(*event < recording.events.len());
            }
        }
        Err(error) => {
            let cause = error.cause().unwrap_or_default();
            assert!(!cause.is_empty(), "{error:?}");
        }
    }
}

/// As one record, whose format and kind the first bytes tell.
fn parts(data: &[u8]) {
    let Some((head, body)) = data.split_first_chunk::<24>() else { return };
    let word = |at: usize| head[at..].first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
    let format = SampleFormat {
        sample_type: word(0) & 0x1ff_ffff,
        read_format: u64::from(head[8]) & 31,
        branch_sample_type: u64::from(head[9]) << 12,
        regs_user: u64::from(head[10]),
        regs_intr: u64::from(head[11]),
        stack_user: 0,
        sample_id_all: head[12] & 1 != 0,
        leave_chains: head[12] & 2 != 0,
    };
    let misc = u16::from_le_bytes([head[13], head[14]]);
    match sample::decode(body, misc, &format) {
        Ok(s) => {
            let items = s.chain.len() + 3 * s.branches.len();
            assert!(8 * items + s.raw.len() + s.stack.len() + s.unread <= body.len());
        }
        Err(error) => assert!(!error.field.is_empty() && !error.why.is_empty()),
    }
    let event = |id| Event { format, ids: vec![id], ..Event::default() };
    let events = [event(u64::from(head[15])), event(u64::from(head[16]))];
    if let Err(error) = record::decode(u32::from(head[17]) % 90, misc, body, &events) {
        assert!(!error.to_string().is_empty());
    }
}
