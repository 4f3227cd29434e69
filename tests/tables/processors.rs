//! Event codes of AMD, and the tables that processors find.

use super::table;
use std::collections::HashMap;
use tma::tables::EventSpec;

#[test]
fn event_codes_have_twelve_bits() {
    let zen4 = table("zen4");
    let spec = |name: &str| zen4.events[usize::from(zen4.event(name).unwrap())].spec.clone();
    // PMCx1A0, the slots the front end left empty: PPR for family 19h model 11h.
    let slots = EventSpec { code: 0x1a0, umask: 0x01, ..EventSpec::default() };
    assert_eq!(spec("de_no_dispatch_per_slot.no_ops_from_frontend"), slots);
    let whole = EventSpec { cmask: 6, ..slots };
    assert_eq!(spec("de_no_dispatch_per_slot.no_ops_from_frontend:c6"), whole);
    let stalls = EventSpec { code: 0x1a0, umask: 0x1e, ..EventSpec::default() };
    assert_eq!(spec("de_no_dispatch_per_slot.backend_stalls"), stalls);
}

#[test]
fn processors_find_their_table_and_only_one() {
    let mut owners: HashMap<(u32, u32), String> = HashMap::new();
    for name in ["zen1", "zen2", "zen3", "zen4", "zen5"] {
        let table = table(name);
        assert_eq!(table.vendor, "AuthenticAMD");
        for rule in &table.matches {
            for model in &rule.models {
                let before = owners.insert((rule.family, *model), name.to_owned());
                assert_eq!(before, None, "{name}: family {} model {model:#x}", rule.family);
            }
        }
    }
    // Display family and model of processors of each kind.
    let known = [
        ("Naples", 0x17, 0x01, "zen1"),
        ("Picasso", 0x17, 0x18, "zen1"),
        ("Rome", 0x17, 0x31, "zen2"),
        ("Renoir", 0x17, 0x60, "zen2"),
        ("Matisse", 0x17, 0x71, "zen2"),
        ("Milan", 0x19, 0x01, "zen3"),
        ("Vermeer", 0x19, 0x21, "zen3"),
        ("Cezanne", 0x19, 0x50, "zen3"),
        ("Genoa", 0x19, 0x11, "zen4"),
        ("Raphael", 0x19, 0x61, "zen4"),
        ("Bergamo", 0x19, 0xa0, "zen4"),
        ("Turin", 0x1a, 0x02, "zen5"),
        ("Granite Ridge", 0x1a, 0x44, "zen5"),
    ];
    for (what, family, model, name) in known {
        assert_eq!(owners.get(&(family, model)).map(String::as_str), Some(name), "{what}");
    }
}
