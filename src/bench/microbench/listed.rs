//! A form as lists have it.

/// A form as it is listed.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Listed {
    /// Its name.
    pub form: String,
    /// iced-x86's name of its encoding, with the choice of its operand.
    pub code: String,
    /// Extensions that it needs.
    pub extensions: Vec<String>,
    /// Why no kernel is made of it here, if none is.
    pub reason: Option<String>,
}
