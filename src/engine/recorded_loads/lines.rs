//! Cache lines that several threads access → rows of the document.

use super::access::Site;
use super::code::{Code, memory};
use super::fields::field;
use super::gather::{Gathered, LineFound};
use super::variables::name_of;
use iced_x86::InstructionInfoFactory;
use loads::recorded::{Accesses, Actor, Line};
use report::documents::loads::{LineAccessRow, LineRow};
use std::collections::HashMap;
use tma::Address;

/// The lines of a recording, those found modified in another core's cache most often first.
pub(super) fn line_rows(gathered: &mut Gathered, recording: usize) -> Vec<LineRow> {
    let lines = std::mem::take(&mut gathered.lines);
    let mut bytes = Widths { known: HashMap::new(), info: InstructionInfoFactory::new() };
    let mut rows: Vec<LineRow> = lines
        .into_iter()
        .map(|(line, mut found)| {
            for ((.., site), accesses) in &mut found.shared.accesses {
                accesses.bytes = bytes.of(gathered.sites[*site], &mut gathered.code);
            }
            line_row(gathered, recording, line, &found)
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.modified, row.writes + row.loads)));
    // Every line that was found modified is among them.
    let all: u64 = rows.iter().map(|row| row.modified).sum();
    for row in &mut rows {
        row.share = (all > 0).then(|| row.modified as f64 / all as f64);
    }
    rows
}

/// Bytes that instructions access.
struct Widths {
    known: HashMap<Site, Option<u8>>,
    info: InstructionInfoFactory,
}

impl Widths {
    fn of(&mut self, site: Site, code: &mut Code) -> Option<u8> {
        if let Some(known) = self.known.get(&site) {
            return *known;
        }
        let instruction = site.place().and_then(|place| code.instruction(place));
        let found = instruction.and_then(|one| memory(&one, &mut self.info).bytes);
        self.known.insert(site, found);
        found
    }
}

fn line_row(gathered: &mut Gathered, recording: usize, line: Line, found: &LineFound) -> LineRow {
    let (loads, writes, modified) = found.shared.totals();
    let mut variables: Vec<String> =
        found.objects.iter().map(|n| name_of(&gathered.objects[*n], &gathered.code)).collect();
    variables.sort();
    let mut accesses: Vec<LineAccessRow> = found
        .shared
        .accesses
        .iter()
        .map(|(key, accesses)| {
            let member = found.members.get(&key.1).copied();
            access_row(gathered, *key, accesses, member)
        })
        .collect();
    accesses.sort_by_key(|row| {
        (row.offset, std::cmp::Reverse((row.modified, row.writes + row.loads)), row.thread)
    });
    LineRow {
        recording,
        address: Address(line.address()),
        process: line.process,
        sharing: found.shared.sharing(),
        variables,
        loads,
        writes,
        modified,
        modified_remote: found.shared.remote(),
        share: None,
        threads: found.shared.actors(),
        accesses,
    }
}

fn access_row(
    gathered: &mut Gathered,
    (actor, offset, site): (Actor, u8, usize),
    accesses: &Accesses,
    member: Option<usize>,
) -> LineAccessRow {
    let member = member.and_then(|number| gathered.members.get(number)?.clone());
    let site = gathered.sites[site];
    let thread = match actor {
        Actor::Thread(thread) => Some(thread),
        Actor::Cpu(_) => None,
    };
    let code = &mut gathered.code;
    let place = site.place();
    let operand = |place| field(place, code).ok();
    let member = member.or_else(|| place.and_then(operand)).map(|field| field.text);
    let (timed, cycles) = accesses.latencies;
    let line = place.and_then(|place| code.line(place)).unwrap_or_default();
    LineAccessRow {
        thread,
        thread_name: thread.and_then(|thread| gathered.threads.get(&thread).cloned()),
        cpus: accesses.cpus.iter().copied().collect(),
        offset,
        bytes: accesses.bytes,
        loads: accesses.loads,
        writes: accesses.writes,
        modified: accesses.modified,
        modified_remote: accesses.remote,
        latency_mean: (timed > 0).then(|| cycles as f64 / timed as f64),
        field: member,
        module: place.map(|place| code.path(place.module)).unwrap_or_default(),
        address: Address(site.address()),
        function: place.and_then(|place| code.function(place)).map(|function| function.short),
        file: line.file,
        line: line.line,
    }
}
