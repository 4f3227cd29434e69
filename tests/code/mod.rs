//! Machine code of functions: control flow, jump tables, and what instructions read and write.

mod damage;
mod effects;
mod flow;
mod jump_tables;

use isa::flow::{Edge, Flow, Image, flow};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};

/// A function of the ELF file `data`: its control flow and where it lies.
pub fn function(data: &[u8], name: &str) -> (Flow, u64, u64) {
    let object::File::Elf64(file) = object::File::parse(data).unwrap() else { panic!("not ELF") };
    let symbol = file.symbols().find(|s| s.name() == Ok(name));
    let symbol = symbol.unwrap_or_else(|| panic!("no {name}"));
    let (start, size) = (symbol.address(), symbol.size());
    let code = file.sections().find_map(|s| s.data_range(start, size).ok().flatten()).unwrap();
    let flow = flow(code, start, &[], &Image::new(&data).expect("x86-64"));
    check(&flow, start, start + size);
    (flow, start, start + size)
}

/// What must hold of every flow: blocks, padding and undecoded bytes tile the function, edges lead
/// to blocks, loops are nested in their parents.
pub fn check(flow: &Flow, start: u64, end: u64) {
    let mut parts: Vec<(u64, u64)> = flow.blocks.iter().map(|b| (b.start, b.end)).collect();
    parts.extend(flow.padding.iter().chain(&flow.undecoded));
    parts.sort_unstable();
    let mut at = start;
    for (from, to) in parts {
        assert!(from == at && to > from, "{from:#x}..{to:#x} at {at:#x}");
        at = to;
    }
    assert_eq!(at, end);
    assert!(flow.blocks.is_sorted_by_key(|b| b.start));
    for (index, block) in flow.blocks.iter().enumerate() {
        assert_eq!(flow.block_at(block.start), Some(index));
        assert_eq!(flow.block_at(block.end - 1), Some(index));
        assert!(flow.instructions.binary_search_by_key(&block.start, |i| i.0).is_ok());
        for edge in &block.edges {
            match edge {
                Edge::Block(to) => assert!(*to < flow.blocks.len()),
                Edge::Outside(to) => assert!(!(start..end).contains(to)),
            }
        }
        assert!(
            !block.edges.is_empty() || block.is_exit || block.unresolved,
            "{:#x} goes nowhere",
            block.start
        );
    }
    for (index, this) in flow.loops.iter().enumerate() {
        assert!(this.blocks.is_sorted() && this.blocks.contains(&this.head));
        assert!(this.back_edges.iter().all(|b| this.blocks.contains(b)));
        let parent = this.parent.map(|p| &flow.loops[p]);
        assert!(this.parent.is_none_or(|p| p < index), "outer loops come first");
        assert_eq!(this.depth, parent.map_or(1, |p| p.depth + 1));
        assert!(parent.is_none_or(|p| this.blocks.iter().all(|b| p.blocks.contains(b))));
    }
}
