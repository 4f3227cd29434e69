//! Lines of CSV files.

/// Fields of a line, RFC 4180 (no line breaks inside fields).
pub fn fields(line: &str) -> Vec<String> {
    let (mut all, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(String::new()),
            c => all.last_mut().expect("one field at least").push(c),
        }
    }
    all
}
