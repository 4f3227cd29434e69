//! What the runs of a program write, word by word: words that differ from run to run, such as times, are not compared.

use std::fmt;

/// The output of runs.
#[derive(Debug, Default)]
pub(super) struct Outputs {
    /// The words; those that differ are absent.
    words: Option<Vec<Option<Vec<u8>>>>,
    /// Their number differs.
    is_uneven: bool,
}

/// How outputs differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Difference {
    /// Those without a change do not have the same number of words.
    Uneven,
    /// Another number of words.
    Number,
    /// A word, from 1, without and with the change.
    Word(usize, String, String),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uneven => f.write_str(
                "the output has another number of words each run, and cannot be compared \
                 (`-- sh -c 'COMMAND >/dev/null'` compares none)",
            ),
            Self::Number => f.write_str("its output has another number of words"),
            Self::Word(number, without, with) => {
                write!(f, "its output differs: word {number} is {with}, not {without}")
            }
        }
    }
}

impl Outputs {
    /// Adds that of a run.
    pub fn add(&mut self, output: &[u8]) {
        let words = output.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let words: Vec<&[u8]> = words.collect();
        let Some(known) = &mut self.words else {
            self.words = Some(words.into_iter().map(|word| Some(word.to_vec())).collect());
            return;
        };
        self.is_uneven |= known.len() != words.len();
        for (known, word) in known.iter_mut().zip(words) {
            known.take_if(|known| known != word);
        }
    }

    /// Whether `with` has the same words: how many could not be compared.
    pub fn compared(&self, with: &Self) -> Result<u64, Difference> {
        let (own, other) = (self.words.as_deref(), with.words.as_deref());
        let (own, other) = (own.unwrap_or_default(), other.unwrap_or_default());
        if self.is_uneven {
            return Err(Difference::Uneven);
        }
        if with.is_uneven || own.len() != other.len() {
            return Err(Difference::Number);
        }
        let shown = |word: &Option<Vec<u8>>| match word {
            Some(word) => tma::text::name(&String::from_utf8_lossy(word)).into_owned(),
            None => "another each run".to_owned(),
        };
        for (number, (own, other)) in own.iter().zip(other).enumerate() {
            if own.is_some() && own != other {
                return Err(Difference::Word(number + 1, shown(own), shown(other)));
            }
        }
        Ok(own.iter().filter(|word| word.is_none()).count() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(runs: &[&str]) -> Outputs {
        let mut outputs = Outputs::default();
        runs.iter().for_each(|run| outputs.add(run.as_bytes()));
        outputs
    }

    #[test]
    fn words_that_differ_each_run_are_not_compared() {
        let without = of(&["0.51 s, 7\n", "0.52 s, 7\n"]);
        assert_eq!(without.compared(&of(&["0.41 s, 7"])), Ok(1));
        let word = Difference::Word(3, "7".into(), "8".into());
        assert_eq!(without.compared(&of(&["0.41 s, 8"])), Err(word));
        assert_eq!(without.compared(&of(&["0.41 s,"])), Err(Difference::Number));
        assert_eq!(of(&["a", "a b"]).compared(&of(&["a"])), Err(Difference::Uneven));
    }
}
