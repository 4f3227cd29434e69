//! What the runs of a program write, word by word: words that differ from run to run, such as times, are not compared.

use std::fmt;
use std::ops::Range;

/// The output of runs.
#[derive(Debug, Default)]
pub(super) struct Outputs {
    /// That of the first run.
    first: Option<Vec<u8>>,
    /// Its words; those that differ are absent.
    words: Vec<Option<Range<usize>>>,
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
        let Some(first) = &self.first else {
            self.words = words(output).map(Some).collect();
            self.first = Some(output.to_owned());
            return;
        };
        let mut others = words(output);
        for known in &mut self.words {
            let other = others.next();
            self.is_uneven |= other.is_none();
            known.take_if(|known| other.is_some_and(|other| first[known.clone()] != output[other]));
        }
        self.is_uneven |= others.next().is_some();
    }

    /// The words; those that differ are absent.
    fn words(&self) -> impl Iterator<Item = Option<&[u8]>> {
        let text = self.first.as_deref().unwrap_or_default();
        self.words.iter().map(|word| word.clone().and_then(|word| text.get(word)))
    }

    /// Whether `with` has the same words: how many could not be compared.
    pub fn compared(&self, with: &Self) -> Result<u64, Difference> {
        if self.is_uneven {
            return Err(Difference::Uneven);
        }
        if with.is_uneven || self.words.len() != with.words.len() {
            return Err(Difference::Number);
        }
        let shown = |word: Option<&[u8]>| match word {
            Some(word) => tma::text::name(&String::from_utf8_lossy(word)).into_owned(),
            None => "another each run".to_owned(),
        };
        for (number, (own, other)) in self.words().zip(with.words()).enumerate() {
            if own.is_some() && own != other {
                return Err(Difference::Word(number + 1, shown(own), shown(other)));
            }
        }
        Ok(self.words.iter().filter(|word| word.is_none()).count() as u64)
    }
}

/// Where the words of a text are.
fn words(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut end = 0;
    let all = text.split(u8::is_ascii_whitespace).map(move |word| {
        let start = end;
        end += word.len() + 1;
        start..start + word.len()
    });
    all.filter(|word| !word.is_empty())
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
