//! The events that locate nodes.

use super::chooser::Chooser;
use super::why_not::WhyNot;
use pmu::sampling::SampledEvent;
use tma::tables::select;
use tma::{ErrorKind, Result};

/// Most events that locate the nodes of a tree: each takes a counter from what is counted.
const MOST: usize = 4;

/// Events, or why there are none here.
type Found = std::result::Result<Vec<SampledEvent>, WhyNot>;

impl Chooser<'_> {
    /// The events that locate a node, one for each kind of core; the inner error says why there
    /// are none here.
    ///
    /// # Errors
    /// No table has such a node.
    pub fn for_node(&mut self, node: &str) -> Result<Found> {
        let mut events = Vec::new();
        let mut why = WhyNot::Unlocatable(node.to_owned());
        let mut unknown = None;
        let mut is_known = self.cores.is_empty();
        for core in self.cores {
            let nodes = match select(&core.table, node) {
                Ok(nodes) => nodes,
                Err(error) => {
                    unknown = Some(error);
                    continue;
                }
            };
            is_known = true;
            let names = nodes.iter().flat_map(|n| &core.table.nodes[usize::from(*n)].spec.locate);
            for name in names {
                match self.of_table(core, name).map(|e| e.map(|e| self.settled(e))) {
                    Some(Ok(Ok(event))) => {
                        events.push(event);
                        break;
                    }
                    Some(Ok(Err(errno))) => why = WhyNot::Refused(name.clone(), errno),
                    Some(Err(reason)) => why = reason,
                    None => why = WhyNot::NoEvent(core.table.name.clone(), name.clone()),
                }
            }
        }
        match unknown {
            Some(error) if !is_known => Err(error),
            _ if events.is_empty() => {
                Ok(Err(WhyNot::NotLocated(node.to_owned(), Some(why.into()))))
            }
            _ => Ok(Ok(events)),
        }
    }

    /// The events that `name` means: a node's, or an event by its name.
    ///
    /// # Errors
    /// There is neither such a node nor such an event.
    pub fn beside(&mut self, name: &str) -> Result<Found> {
        match self.for_node(name) {
            Ok(found) => Ok(found),
            Err(unknown) => match self.by_name(name) {
                Ok(events) => Ok(Ok(events)),
                Err(error) if error.kind() == ErrorKind::Usage => Err(unknown),
                Err(error) => Ok(Err(WhyNot::Named(error))),
            },
        }
    }

    /// The events that locate the nodes of the tree that is counted, upper levels first.
    pub fn for_tree(&mut self, why_not: &mut Vec<WhyNot>) -> Vec<SampledEvent> {
        if let Some(why) = self.no_pmu() {
            why_not.push(WhyNot::NoneLocated(Some(why.into())));
            return Vec::new();
        }
        let mut events: Vec<SampledEvent> = Vec::new();
        let mut left_out = Vec::new();
        for core in self.cores {
            let mut nodes: Vec<&tma::tables::Node> = core
                .chosen
                .selection
                .tree
                .iter()
                .map(|n| &core.table.nodes[usize::from(*n)])
                .collect();
            nodes.sort_by_key(|node| node.level);
            let mut here = 0;
            for node in nodes.iter().filter(|node| !node.spec.locate.is_empty()) {
                let settled = node.spec.locate.iter().find_map(|name| {
                    let event = self.of_table(core, name)?.ok()?;
                    self.settled(event).ok()
                });
                match settled {
                    None => why_not.push(WhyNot::NotLocated(node.id.to_string(), None)),
                    Some(event) if events.contains(&event) => {}
                    Some(_) if here == MOST => left_out.push(node.id.as_str()),
                    Some(event) => {
                        here += 1;
                        events.push(event);
                    }
                }
            }
        }
        if !left_out.is_empty() {
            let list = left_out.join(", ");
            let note = format!(
                "not located, to leave counters to the tree: {list}; --by NODE locates one"
            );
            self.notes.push(note.into());
        }
        if events.is_empty() && why_not.len() > 1 {
            // One reason for all of them.
            why_not.clear();
            why_not.push(WhyNot::NoneLocated(None));
        }
        events
    }
}
