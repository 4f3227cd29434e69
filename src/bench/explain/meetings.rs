//! Stores and loads that meet in the sandbox only because registers and memory start alike there.
//!
//! The dependencies through memory are found twice: with the values that the block was measured
//! with, and with those that were asked for and random ones otherwise. What only the first finds
//! hangs on the values.

use super::evidence;
use super::explainer::{Explainer, Subject};
use super::found::Found;
use isa::deps::memory::Settings;

impl Explainer {
    /// These pairs, in words; none without values.
    pub(super) fn meetings(&mut self, subject: &Subject<'_>, found: &Found) -> Vec<String> {
        let carried = &found.analysis.memory.dependencies;
        if carried.is_empty() || subject.measurement.values.is_none() {
            return Vec::new();
        }
        let code = &found.code;
        let unknown = Settings {
            window: self.window(),
            runs: evidence::RUNS,
            initial_values: vec![self.known.clone()],
        };
        let by_itself = self.analyser.analyse(code, &unknown).memory.dependencies;
        let mut pairs: Vec<(usize, usize)> = carried.iter().map(|c| (c.writer, c.reader)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs.retain(|(w, r)| !by_itself.iter().any(|c| (c.writer, c.reader) == (*w, *r)));
        let words = |(writer, reader): (usize, usize)| {
            let (store, load) = (code.text(writer), code.text(reader));
            format!(
                "`{load}` reads what `{store}` stored because registers and memory start alike; in \
                 the program they may not meet (--init or --registers sets others)"
            )
        };
        pairs.into_iter().map(words).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Init, Options, Profiler};
    use isa::code::Block;
    use isa::deps::{Analyser, Code};
    use isa::latency::Latencies;

    fn meetings(hex: &str, init: &[(Init, u64)]) -> Vec<String> {
        let bytes = isa::code::parse_hex(hex).unwrap();
        let block = Block::decode(&bytes).unwrap();
        let options = Options { init: init.to_vec(), ..Options::quick() };
        let measurement = Profiler::new(options.clone()).measure(&block).unwrap();
        if measurement.values.is_none() {
            return vec!["not measured".to_owned()];
        }
        let code = Code::of_bytes(&bytes, tma::Core::default().facts()).unwrap();
        let search = evidence::search(&measurement, 64);
        let analysis = Analyser::default().analyse(&code, &search);
        let found = Found::without_evidence(analysis, code);
        let subject = Subject { block: &block, measurement: &measurement };
        Explainer::new(&options, Latencies::default()).meetings(&subject, &found)
    }

    #[test]
    fn only_pairs_that_hang_on_the_values_are_named() {
        // mov [rdi],rax; mov rcx,[rsi]: two registers that start alike
        let found = meetings("488907 488b0e", &[]);
        if found == ["not measured"] {
            return;
        }
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("`mov rcx,[rsi]` reads what `mov [rdi],rax`"), "{found:?}");
        // The same with both registers asked for: that they meet is what was said.
        let asked = [(Init::Register(7), 0x2_0000), (Init::Register(6), 0x2_0000)];
        assert!(meetings("488907 488b0e", &asked).is_empty());
        // mov [rdi],rax; mov rcx,[rdi]: one register
        assert!(meetings("488907 488b0f", &[]).is_empty());
        // mov rax,[rdi]; mov rcx,[rsi]: nothing is stored
        assert!(meetings("488b07 488b0e", &[]).is_empty());
    }
}
