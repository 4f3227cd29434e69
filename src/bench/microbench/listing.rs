//! An entry in the list of forms.

/// A form in the list, or an encoding without one.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Listed {
    /// Its name.
    pub form: String,
    /// iced-x86's name of its encoding, with the choice of its operand.
    pub code: String,
    /// Extensions that it needs.
    pub extensions: Vec<String>,
    /// Why it cannot be measured here, if it cannot.
    pub reason: Option<String>,
}
