//! Commands that tdtool prints: it takes each of them, as a shell splits it, with its options, and those that cost nothing
//! run.

use super::child::Limited as _;
use std::collections::HashSet;
use std::process::{Command, Output};
use std::sync::{LazyLock, Mutex, PoisonError};

/// The program under test.
const TDTOOL: &str = env!("CARGO_BIN_EXE_tdtool");

/// Commands that were checked.
static SEEN: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);

/// Values that stand for a number: what a user replaces.
const NUMBERS: [&str; 4] = ["PID", "N", "S", "SECONDS"];

/// The commands of tdtool.
const COMMANDS: [&str; 14] = [
    "report",
    "record",
    "diff",
    "bench",
    "count",
    "branches",
    "loads",
    "prefetch",
    "tables",
    "workload",
    "block",
    "deps",
    "microbench",
    "doctor",
];

/// What the program says of a command that a sentence only names.
const INCOMPLETE: [&str; 3] =
    ["required arguments were not provided", "nothing to report on", "nothing to record"];

/// Checks the commands of an output; of a release build, which would carry them out, none.
pub fn check(text: &str) {
    if !cfg!(debug_assertions) {
        return;
    }
    for Printed { command, is_named } in commands(text) {
        let is_new = SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert(command.clone());
        if is_new {
            check_one(&command, is_named);
        }
    }
}

/// A command in an output.
#[derive(Debug, PartialEq, Eq)]
pub struct Printed {
    pub command: String,
    /// Whether a sentence has it: `tdtool record` there names a command, and leaves out what it needs.
    pub is_named: bool,
}

/// The commands of an output: between backticks, after `try:` or `next:`, and on the lines below `next:`.
pub fn commands(text: &str) -> Vec<Printed> {
    let whole = |command: &str| Printed { command: command.trim().to_owned(), is_named: false };
    let named = |command: &str| Printed { command: command.to_owned(), is_named: true };
    let mut found = Vec::new();
    for line in text.lines() {
        let quoted = line.split('`').skip(1).step_by(2);
        found.extend(quoted.filter(|part| part.starts_with("tdtool ")).map(named));
        let rest = ["try:", "next:"].iter().find_map(|head| line.trim_start().strip_prefix(head));
        let outside: String = rest.unwrap_or_default().split('`').step_by(2).collect();
        let bare = line.strip_prefix("        ").filter(|line| line.starts_with("tdtool "));
        match begin(&outside) {
            // The command is all there is.
            Some(0) => found.push(whole(&outside)),
            Some(_) => panic!("a command without backticks: {line}"),
            None => found.extend(bare.map(whole)),
        }
    }
    found
}

/// Where a command begins, in words of a text.
fn begin(text: &str) -> Option<usize> {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.windows(2).position(|two| two[0] == "tdtool" && COMMANDS.contains(&two[1]))
}

fn check_one(command: &str, is_named: bool) {
    let words = split(command).unwrap_or_else(|why| panic!("`{command}`: {why}"));
    let words: Vec<&str> = words
        .iter()
        .map(|word| if NUMBERS.contains(&word.as_str()) { "1" } else { word.as_str() })
        .collect();
    let checked = checked(&words[1..]);
    let said = String::from_utf8_lossy(&checked.stderr);
    if is_named && INCOMPLETE.iter().any(|what| said.contains(what)) {
        return;
    }
    assert!(checked.status.success(), "`{command}` is not one that tdtool takes: {said}");
    if is_cheap(&words) {
        let ran = Command::new(TDTOOL).args(&words[1..]).run_limited().expect("it can be started");
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "`{command}` does not run: {said}");
    }
}

/// What becomes of a command line that is not carried out.
fn checked(words: &[&str]) -> Output {
    let mut tdtool = Command::new(TDTOOL);
    tdtool.env("TDTOOL_CHECK_ONLY", "1").args(words).run_limited().expect("it can be started")
}

#[test]
#[cfg(debug_assertions)]
fn a_command_line_is_checked_and_not_carried_out() {
    let folder = super::files::Folder::new();
    let made = folder.file("made");
    assert!(checked(&["report", "--", "touch", &made]).status.success());
    assert!(!std::path::Path::new(&made).exists(), "it ran");
    for contradiction in [
        &["report", "a.json", "--repeat", "2"][..],
        &["report", "--regions", "--format", "csv", "--", "true"],
        &["record", "-p", "1", "-a"],
        &["count", "--seconds", "1", "--", "true"],
        &["bench", "true"],
        &["diff", "--", "true", "--", "false"],
    ] {
        assert_eq!(checked(contradiction).status.code(), Some(2), "{contradiction:?}");
    }
}

/// Whether it only prints what the program has, and names nothing that a user replaces.
fn is_cheap(words: &[&str]) -> bool {
    let has_placeholder =
        words.iter().any(|word| word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase()));
    let is_help = words.iter().any(|word| ["--help", "--version"].contains(word));
    is_help
        || !has_placeholder
            && matches!(words[1..], ["tables", ..] | ["workload", "list", ..] | ["keys", ..])
}

/// The words of a command line as bash splits it; refuses what a shell would take for more than words.
fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            ' ' => words.extend(word.take()),
            '\'' => {
                let own = word.get_or_insert_default();
                loop {
                    match rest.next() {
                        Some('\'') => break,
                        Some(letter) => own.push(letter),
                        None => return Err("a quote is not closed".to_owned()),
                    }
                }
            }
            '$' if rest.peek() == Some(&'\'') => {
                rest.next();
                let own = word.get_or_insert_default();
                loop {
                    match (rest.next(), rest.peek().copied()) {
                        (Some('\''), _) => break,
                        (Some('\\'), Some(letter)) => {
                            rest.next();
                            own.push(if letter == 'n' { '\n' } else { letter });
                        }
                        (Some(letter), _) => own.push(letter),
                        (None, _) => return Err("a quote is not closed".to_owned()),
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(rest.next()),
            ';' | '|' | '&' | '<' | '>' | '(' | ')' | '"' | '$' | '#' | '*' | '…' => {
                return Err(format!("a shell does not take {next} as it is"));
            }
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    match words.last() {
        Some(last) if last == "--" => Err("nothing is after --".to_owned()),
        _ if words.iter().any(|word| word.ends_with(',')) => {
            Err("a comma is not of the command".to_owned())
        }
        _ => Ok(words),
    }
}

#[test]
fn commands_are_found_and_split_as_a_shell_does() {
    let text = "error: no\ntry:   `tdtool report -- 'a b'`, or `x`\nnext: why:\n        tdtool block a:@0x1 --run\n\
                try:   tdtool doctor\n  tdtool is not a command here\n";
    let found: Vec<String> = commands(text).into_iter().map(|one| one.command).collect();
    assert_eq!(found, ["tdtool report -- 'a b'", "tdtool block a:@0x1 --run", "tdtool doctor"]);
    let words = split(r"tdtool report -- sh -c 'it'\''s; echo' '' $'a\nb'").unwrap();
    assert_eq!(words, ["tdtool", "report", "--", "sh", "-c", "it's; echo", "", "a\nb"]);
    for wrong in [
        "tdtool report --",
        "tdtool report -- x; y",
        "tdtool report -- COMMAND, or -a",
        "tdtool 'a",
    ] {
        assert!(split(wrong).is_err(), "{wrong}");
    }
}

/// What a shell makes of quoted words, of bash as the oracle.
#[test]
fn a_shell_gets_the_words_that_were_quoted() {
    let words =
        ["a b", "it's", "", "$HOME", "~", "x\ny\t'\\z", "=ls", "a=b", "*", "ä ö", "\u{1b}[1mf"];
    let script = format!("printf '%s\\0' {}", tma::shell::quoted(&words));
    assert!(!script.contains('\n'), "one line");
    let Ok(ran) = Command::new("bash").args(["-c", &script]).run_limited() else { return };
    let found = String::from_utf8(ran.stdout).expect("text");
    assert_eq!(found.split_terminator('\0').collect::<Vec<_>>(), words, "{script}");
}
