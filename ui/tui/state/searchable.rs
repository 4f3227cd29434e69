//! Documents with what search and filter look at. Making that takes tens of milliseconds for 100,000 functions, so
//! it is made where it delays no picture.

/// A document, and the texts of its functions in lower case.
#[derive(Debug, Clone)]
pub struct Searchable<T> {
    pub document: T,
    pub lower: Texts,
}

/// Texts, one after the other in memory: a search reads them all.
#[derive(Debug, Clone, Default)]
pub struct Texts {
    all: String,
    /// End of each text.
    ends: Vec<usize>,
}

impl Texts {
    /// The text with this number.
    pub fn get(&self, number: usize) -> Option<&str> {
        let before = number.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied());
        self.all.get(before?..*self.ends.get(number)?)
    }
}

impl FromIterator<String> for Texts {
    fn from_iter<I: IntoIterator<Item = String>>(texts: I) -> Self {
        let mut made = Self::default();
        for text in texts {
            made.all.push_str(&text);
            made.ends.push(made.all.len());
        }
        made
    }
}

/// A document with functions.
pub trait HasFunctions {
    /// The text of each that search and filter look at.
    fn texts(&self) -> impl Iterator<Item = String>;
}

impl<T: HasFunctions> Searchable<T> {
    /// Prepares a document.
    pub fn boxed(document: T) -> Box<Self> {
        let lower = document.texts().map(|text| text.to_lowercase()).collect();
        Box::new(Self { document, lower })
    }
}

#[cfg(test)]
mod tests {
    use super::Texts;

    #[test]
    fn each_text_is_found_by_its_number() {
        let texts: Texts = ["ab", "", "c"].map(str::to_owned).into_iter().collect();
        let found: Vec<_> = (0..4).map(|number| texts.get(number)).collect();
        assert_eq!(found, [Some("ab"), Some(""), Some("c"), None]);
    }
}
