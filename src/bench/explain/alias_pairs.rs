//! Stores and loads that alias in the sandbox only because of its initial values.
//!
//! Memory dependencies are analysed twice: with the values that the block was measured with, and with
//! those that the user set and random ones otherwise. Pairs that only the first analysis finds depend
//! on the initial values.

use super::evidence;
use super::explainer::{Explainer, Subject};
use super::findings::Findings;
use isa::deps::memory::Settings;

impl Explainer {
    /// These pairs, one sentence each; none without values.
    pub(super) fn alias_pairs(
        &mut self,
        subject: &Subject<'_>,
        findings: &Findings,
    ) -> Vec<String> {
        let carried = &findings.analysis.memory.dependencies;
        if carried.is_empty() || subject.measurement.values.is_none() {
            return Vec::new();
        }
        let code = &findings.code;
        let unknown = Settings {
            window: self.window(),
            runs: evidence::RUNS,
            initial_values: vec![self.user_values.clone()],
        };
        let independent = self.analyser.analyse(code, &unknown).memory.dependencies;
        let mut pairs: Vec<(usize, usize)> = carried.iter().map(|c| (c.writer, c.reader)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs.retain(|(w, r)| !independent.iter().any(|c| (c.writer, c.reader) == (*w, *r)));
        let words = |(writer, reader): (usize, usize)| {
            let (store, load) = (code.text(writer), code.text(reader));
            format!(
                "`{load}` aliases `{store}` because of the sandbox's initial values; if it does not in \
                 the program, set others with --init or --registers"
            )
        };
        pairs.into_iter().map(words).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockMeasurer, Init, Options};
    use isa::code::Block;
    use isa::deps::{Analyser, Code};
    use isa::latency::Latencies;

    fn alias_pairs(hex: &str, init: &[(Init, u64)]) -> Vec<String> {
        let bytes = isa::code::parse_hex(hex).unwrap();
        let block = Block::decode(&bytes).unwrap();
        let options = Options { init: init.to_vec(), ..Options::quick() };
        let measurement = BlockMeasurer::new(options.clone()).measure(&block).unwrap();
        if measurement.values.is_none() {
            return vec!["not measured".to_owned()];
        }
        let code = Code::of_bytes(&bytes, tma::Core::default().facts()).unwrap();
        let search = evidence::search(&measurement, 64);
        let analysis = Analyser::default().analyse(&code, &search);
        let findings = Findings::without_evidence(analysis, code);
        let subject = Subject { block: &block, measurement: &measurement, looped: None };
        Explainer::new(&options, Latencies::default()).alias_pairs(&subject, &findings)
    }

    #[test]
    fn only_pairs_that_depend_on_the_initial_values_are_named() {
        // mov [rdi],rax; mov rcx,[rsi]: two registers with the same initial value
        let findings = alias_pairs("488907 488b0e", &[]);
        if findings == ["not measured"] {
            return;
        }
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].starts_with("`mov rcx,[rsi]` aliases `mov [rdi],rax`"), "{findings:?}");
        // Both registers set by the user: the aliasing is intended.
        let asked = [(Init::Register(7), 0x2_0000), (Init::Register(6), 0x2_0000)];
        assert!(alias_pairs("488907 488b0e", &asked).is_empty());
        // mov [rdi],rax; mov rcx,[rdi]: one register
        assert!(alias_pairs("488907 488b0f", &[]).is_empty());
        // mov rax,[rdi]; mov rcx,[rsi]: nothing is stored
        assert!(alias_pairs("488b07 488b0e", &[]).is_empty());
    }
}
