//! Places → functions, with their shares and lines.

use super::gather::Tally;
use super::{HotFunction, Key, Profile};
use crate::address_space::ModuleAddress;
use std::collections::{BTreeMap, HashMap};

/// What the samples of one function add up to.
#[derive(Default)]
struct Sum {
    tally: Tally,
    function: HotFunction,
    places: BTreeMap<u64, Tally>,
}

impl Profile {
    /// Fills [`Profile::functions`] from what was gathered.
    pub(super) fn attribute(&mut self) {
        let mut sums: HashMap<Option<Key>, Sum> = HashMap::new();
        for (place, tally) in std::mem::take(&mut self.gathered.places) {
            let (key, function) = match place {
                Some(place) => self.function(place),
                None => (None, nowhere()),
            };
            let sum = sums.entry(key).or_insert_with(|| Sum { function, ..Sum::default() });
            sum.tally.add(tally);
            if let Some(place) = place {
                sum.places.entry(place.address).or_default().add(tally);
            }
        }
        let mut sums: Vec<(Option<Key>, Sum)> = sums.into_iter().collect();
        // Equal shares in a fixed order: a report does not change by itself.
        sums.sort_by(|(a, x), (b, y)| y.tally.weight.total_cmp(&x.tally.weight).then(a.cmp(b)));
        for (key, sum) in sums {
            let share = self.share(sum.tally);
            let mut function = sum.function;
            (function.share, function.samples) = (share, sum.tally.samples);
            self.summary.functions.push(function);
            self.keys.push(key.unwrap_or((usize::MAX, 0)));
            self.places.push(sum.places.into_iter().collect());
        }
        self.find_dominant();
    }

    /// Of which event each function has most, in shares of that event's samples: samples of
    /// different events cannot be added up.
    fn find_dominant(&mut self) {
        let by_event = std::mem::take(&mut self.gathered.by_event);
        if by_event.len() < 2 {
            return;
        }
        let index: HashMap<Key, usize> =
            self.keys.iter().enumerate().map(|(i, key)| (*key, i)).collect();
        let mut best: Vec<Option<(usize, f64)>> = vec![None; self.keys.len()];
        for (event, places) in by_event.into_iter().enumerate() {
            let all: f64 = places.values().map(|t| t.weight).sum();
            let mut shares = vec![0.0; self.keys.len()];
            for (place, tally) in places {
                let key = place.and_then(|p| self.function(p).0).unwrap_or((usize::MAX, 0));
                if let (Some(&i), true) = (index.get(&key), all > 0.0) {
                    shares[i] += tally.weight / all;
                }
            }
            for (best, share) in best.iter_mut().zip(shares) {
                if share > 0.0 && best.is_none_or(|(_, b)| share > b) {
                    *best = Some((event, share));
                }
            }
        }
        self.summary.dominant = best;
    }

    /// The function at a place: what makes it, and what is known of it beside samples.
    fn function(&mut self, place: ModuleAddress) -> (Option<Key>, HotFunction) {
        let module = &self.spaces.modules.all[place.module];
        let (name, path) = (module.name().to_owned(), module.path.clone());
        let Some(found) = self.symbols.function(module, place) else {
            let gap = self.symbols.gap(module).map(|gap| gap.to_string());
            let bracketed = bracketed(&name);
            let function = HotFunction {
                name: bracketed.clone(),
                short: bracketed,
                module: name,
                path,
                gap: gap.or_else(|| Some("no function is known there".to_owned())),
                ..HotFunction::default()
            };
            return (Some((place.module, u64::MAX)), function);
        };
        let function = HotFunction {
            name: found.name,
            short: found.short,
            module: name,
            path,
            start: found.start,
            end: found.end,
            ..HotFunction::default()
        };
        (Some((place.module, found.start)), function)
    }

    /// Looks up the source lines of the hottest functions, so far as their programs have any.
    pub fn find_lines(&mut self, most: usize) {
        for index in 0..self.functions.len().min(most) {
            let (module, start) = self.keys[index];
            let Some(module_of) = self.spaces.modules.all.get(module) else { continue };
            if self.functions[index].gap.is_some() {
                continue;
            }
            let lines = self.symbols.lines(module_of, ModuleAddress { module, address: start });
            if let Some(outermost) = lines.last() {
                let function = &mut self.summary.functions[index];
                function.file.clone_from(&outermost.file);
                function.line = outermost.line;
            }
        }
    }
}

/// What stands for the functions of a module without any: its name in brackets, which some have.
pub(super) fn bracketed(module: &str) -> String {
    if module.starts_with('[') { module.to_owned() } else { format!("[{module}]") }
}

/// Samples at addresses where nothing is known to be mapped.
fn nowhere() -> HotFunction {
    HotFunction {
        name: "[unknown]".to_owned(),
        short: "[unknown]".to_owned(),
        module: "[unknown]".to_owned(),
        gap: Some("nothing is known to be mapped there".to_owned()),
        ..HotFunction::default()
    }
}
