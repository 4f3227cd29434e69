//! Every parser that reads block inputs from outside, fed with the same bytes: shared by the fuzz
//! target and by the ordinary tests. Nothing here runs an assembler or a block.

use bench::batch::rows;
use bench::{Init, Repeat};
use isa::code::{Block, Region, check_directives, listing_syntax, marked, parse_hex, read_binary};
use isa::program::{Location, Names, list_blocks, read_location};
use report::render::block::HEADER;
use tma::{Error, Result};

/// Feeds `data` to all of them.
///
/// # Panics
/// A parser accepts what it must not, or its error says nothing.
pub fn feed(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Some(bytes) = sensible(parse_hex(&text)) {
        assert!(!bytes.is_empty() && bytes.len() <= 4096);
        decoded(&bytes);
    }
    if let Some((place, value)) = sensible(Init::parse(&text)) {
        assert!(!matches!(place, Init::Register(16..)), "{text}");
        let again = Init::parse(&format!("mem={value:#x}"));
        assert_eq!(again.ok(), Some((Init::Memory, value)));
    }
    sensible(Repeat::read(&text));
    markers(data, &text);
    locations(data, &text);
    batches(data);
}

fn decoded(bytes: &[u8]) {
    if let Some(block) = sensible(Block::decode(bytes)) {
        let length: usize = block.instructions.iter().map(|i| i.bytes.len()).sum();
        assert_eq!(length, bytes.len(), "every byte belongs to an instruction");
        let _ = block.refusal();
    }
}

fn markers(data: &[u8], text: &str) {
    sensible(check_directives(text));
    let _ = listing_syntax(text);
    for region in sensible(marked(text)).unwrap_or_default() {
        assert!(region.begin < region.end && region.end < text.lines().count());
    }
    let regions = sensible(read_binary(data)).unwrap_or_default();
    for region in &regions {
        assert!(!region.bytes.is_empty() && region.bytes.len() <= 4096);
        decoded(&region.bytes);
    }
    sensible(Region::choose(regions, text));
}

fn locations(data: &[u8], text: &str) {
    if let Some((file, _)) = Location::parse(text) {
        assert!(text.starts_with(file));
    }
    for place in [Location::Range(0x40_1000, 0x40_1008), Location::Function("main".into(), 1)] {
        if let Some(listed) = sensible(list_blocks(data, Names::default(), &place)) {
            assert!(listed.blocks.iter().all(|b| b.instructions > 0), "{listed:?}");
        }
        if let Some(found) = sensible(read_location(data, &place)) {
            let bytes = found.bytes;
            assert!(!bytes.is_empty() && bytes.len() <= 4096);
        }
    }
}

fn batches(data: &[u8]) {
    let Some(read) = sensible(rows::read(data)) else { return };
    for row in &read.rows {
        let _ = sensible(row.block());
        assert!(!row.written().contains('\n'), "a row is a line");
    }
    let lines = data.iter().filter(|b| **b == b'\n').count() + 1;
    assert!(read.rows.len() <= lines);
    let output = [HEADER.as_bytes(), b"\n", data].concat();
    for output in [data, &output] {
        if let Some((count, bytes)) = sensible(report::render::block::finished(output, &read.rows))
        {
            assert!(count <= read.rows.len() && bytes <= output.len() as u64);
            assert!(bytes == 0 || output[bytes as usize - 1] == b'\n', "no torn line is kept");
        }
    }
}

/// The value; an error must say what is wrong and why, or what to do.
fn sensible<T>(result: Result<T>) -> Option<T> {
    let helpful = |e: &Error| !e.what().is_empty() && (e.cause().is_some() || e.remedy().is_some());
    result.inspect_err(|e| assert!(helpful(e) || e.what() == "the block is empty", "{e:?}")).ok()
}
