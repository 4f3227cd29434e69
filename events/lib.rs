//! The data that tdtool ships: event tables, node texts, latencies and ports, as files of this folder.
//!
//! A new TOML here is a new microarchitecture on the next build; no Rust changes.

use tma::tables::schema::CoreKind;
use tma::tables::texts::Text;
use tma::tables::{Bundle, Embedded, Library, Packed, Rule};

/// All of it.
pub static BUNDLE: Bundle = Bundle {
    tables: include!(concat!(env!("OUT_DIR"), "/tables.rs")),
    event_names: include!(concat!(env!("OUT_DIR"), "/names.rs")),
    plain_names: include!(concat!(env!("OUT_DIR"), "/plain_names.rs")),
    texts: include!(concat!(env!("OUT_DIR"), "/texts.rs")),
    latencies: include!(concat!(env!("OUT_DIR"), "/latencies.rs")),
    ports: include!(concat!(env!("OUT_DIR"), "/ports.rs")),
};

/// The tables that are built in.
///
/// ```
/// // CPUID of a Xeon of Sapphire Rapids and of an EPYC of Genoa: family, model, stepping.
/// for (name, id, width, general) in [("spr", (6, 143, 8), 6, 8), ("zen4", (25, 17, 1), 6, 6)] {
///     let library = events::library();
///     let (family, model, stepping) = id;
///     let cpu = tma::Cpu { family, model, stepping, ..tma::Cpu::default() };
///     assert!(library.head(name, &cpu)?.rank.is_some(), "{name} describes it");
///     // Slots a cycle and general counters: Intel's and AMD's optimization guides and manuals.
///     let table = library.load(name)?;
///     assert_eq!((table.pipeline.width, table.counters.general), (width, general));
/// }
/// # Ok::<(), tma::Error>(())
/// ```
///
/// ```
/// // Every node has its text: what it means, usual causes, the next step.
/// let library = events::library();
/// let table = library.load("spr")?;
/// let text = library.texts().node(&table, "Memory_Bound").expect("a node of level 2");
/// assert!(!text.meaning.is_empty() && text.causes.is_some() && text.next.is_some());
/// # Ok::<(), tma::Error>(())
/// ```
pub fn library() -> Library {
    Library::new(&BUNDLE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tma::tables::Table;

    #[test]
    fn every_table_decodes_to_what_its_file_compiles_to() {
        let folder = |name: &str| concat!(env!("CARGO_MANIFEST_DIR"), "/").to_owned() + name;
        let file = |vendor: &str, name: &str| {
            std::fs::read_to_string(folder(&format!("{vendor}/{name}.toml"))).ok()
        };
        for embedded in BUNDLE.tables {
            let name = embedded.name;
            let text = ["intel", "amd", "abstract"].iter().find_map(|vendor| file(vendor, name));
            let parsed = Table::parse(&text.expect("a file"), name).unwrap();
            assert_eq!(embedded.table().unwrap(), parsed, "{name}");
        }
    }

    #[test]
    fn what_is_looked_up_by_halving_is_sorted() {
        assert!(BUNDLE.tables.is_sorted_by_key(|t| t.name));
        assert!(BUNDLE.event_names.is_sorted_by_key(|e| e.0));
        assert!(BUNDLE.plain_names.is_sorted_by_key(|e| e.0));
        assert!(BUNDLE.texts.is_sorted_by_key(|t| t.0));
    }

    #[test]
    fn every_alias_leads_to_a_text_and_every_node_has_causes_and_a_next_step() {
        let find = |key: &str| BUNDLE.texts.iter().find(|(own, _)| *own == key).map(|(_, t)| *t);
        for (key, text) in BUNDLE.texts {
            let group = key.split_once('.').map_or("", |(group, _)| group);
            let target = match text.same {
                Some(same) => find(&format!("{group}.{same}")),
                None => Some(*text),
            };
            let target = target.unwrap_or_else(|| panic!("{key} is the same as nothing"));
            assert!(target.same.is_none(), "{key}: an alias of an alias");
            assert!(!target.meaning.is_empty(), "{key} says nothing");
            let whole = group == "info" || target.causes.is_some() && target.next.is_some();
            assert!(whole, "{key} names no causes or no next step");
        }
    }
}
