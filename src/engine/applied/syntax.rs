//! The loops and memory accesses of a C or C++ text, as far as its tokens show them.

use super::tokens::{Kind, Token, tokens};
use std::ops::Range;

/// A text with its tokens. Ranges are of their numbers.
pub(super) struct Source<'a> {
    pub text: &'a str,
    pub tokens: Vec<Token>,
}

/// A loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Loop {
    /// From its keyword to the end of its body.
    pub all: Range<usize>,
    pub body: Range<usize>,
    /// Of `for (init; condition; step)`.
    pub header: Option<Header>,
}

/// What is between the brackets of `for`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub init: Range<usize>,
    pub condition: Range<usize>,
    pub step: Range<usize>,
}

impl<'a> Source<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, tokens: tokens(text) }
    }

    /// The text of a token; empty beyond the last.
    pub fn word(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |token| &self.text[token.bytes.clone()])
    }

    pub fn is_name(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|token| token.kind == Kind::Name)
    }

    /// Whether it names a variable: no member, no function.
    pub fn is_variable(&self, at: usize) -> bool {
        self.is_name(at) && !self.is_member(at) && self.word(at + 1) != "("
    }

    pub fn is_member(&self, at: usize) -> bool {
        matches!(self.before(at), "." | "->")
    }

    /// The text of the token before.
    pub fn before(&self, at: usize) -> &'a str {
        at.checked_sub(1).map_or("", |before| self.word(before))
    }

    /// After the bracket that closes the one at `open`.
    pub fn closed(&self, open: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for at in open..self.tokens.len() {
            match self.word(at) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.checked_sub(1)?,
                _ => {}
            }
            if depth == 0 {
                return Some(at + 1);
            }
        }
        None
    }

    /// The pieces of a range between marks outside of brackets.
    pub fn split(&self, range: Range<usize>, mark: &str) -> Vec<Range<usize>> {
        let (mut pieces, mut start, mut at) = (Vec::new(), range.start, range.start);
        while at < range.end {
            if self.word(at) == mark {
                pieces.push(start..at);
                start = at + 1;
            }
            let is_open = matches!(self.word(at), "(" | "[" | "{");
            let next = is_open.then(|| self.closed(at)).flatten();
            at = next.unwrap_or(at + 1);
        }
        pieces.push(start..range.end);
        pieces
    }

    /// After the statement that begins at `at`.
    fn statement(&self, at: usize) -> Option<usize> {
        match self.word(at) {
            "{" => self.closed(at),
            "for" | "while" | "switch" => self.statement(self.closed(at + 1)?),
            "if" => {
                let condition = at + 1 + usize::from(self.word(at + 1) == "constexpr");
                let end = self.statement(self.closed(condition)?)?;
                if self.word(end) == "else" { self.statement(end + 1) } else { Some(end) }
            }
            "do" => Some(self.closed(self.statement(at + 1)? + 1)? + 1),
            _ => {
                let rest = self.split(at..self.tokens.len(), ";");
                rest.first().map(|first| first.end + 1).filter(|end| *end <= self.tokens.len())
            }
        }
    }

    /// The loop whose keyword is at `at`.
    fn loop_at(&self, at: usize) -> Option<Loop> {
        let keyword = self.word(at);
        if keyword == "do" {
            let end = self.statement(at + 1)?;
            return Some(Loop { all: at..self.closed(end + 1)?, body: at + 1..end, header: None });
        }
        if !matches!(keyword, "for" | "while") || self.word(at + 1) != "(" {
            return None;
        }
        let start = self.closed(at + 1)?;
        let end = self.statement(start)?;
        let parts = self.split(at + 2..start - 1, ";");
        let header = match &parts[..] {
            [init, condition, step] if keyword == "for" => Some(Header {
                init: init.clone(),
                condition: condition.clone(),
                step: step.clone(),
            }),
            _ => None,
        };
        Some(Loop { all: at..end, body: start..end, header })
    }

    /// The loops around a token, the innermost first. Before its first iteration it is in none.
    pub fn loops_around(&self, token: usize) -> Vec<Loop> {
        let all = (0..token).filter_map(|at| self.loop_at(at));
        let is_before =
            |one: &Loop| one.header.as_ref().is_some_and(|header| header.init.contains(&token));
        let mut all: Vec<Loop> =
            all.filter(|one| one.all.contains(&token) && !is_before(one)).collect();
        all.reverse();
        all
    }

    /// The tokens that begin on a line, from 1.
    pub fn on_line(&self, line: u32) -> Range<usize> {
        let (start, end) = self.line(line);
        let first = self.tokens.partition_point(|token| token.bytes.start < start);
        first..self.tokens.partition_point(|token| token.bytes.start < end)
    }

    /// Where a line begins and ends.
    pub fn line(&self, line: u32) -> (usize, usize) {
        let before = (line as usize).saturating_sub(1);
        let length: usize = self.text.split_inclusive('\n').take(before).map(str::len).sum();
        let own = self.text[length..].split_inclusive('\n').next().map_or(0, str::len);
        (length, length + own)
    }

    /// The memory access whose first name is at `at`: `a[i]`, `p->x`, `*p` and longer ones.
    pub fn access(&self, at: usize) -> Option<Access> {
        if !self.is_name(at) || self.is_member(at) {
            return None;
        }
        let (mut end, mut last) = (at + 1, None);
        loop {
            let next = match self.word(end) {
                "[" => self.closed(end)?,
                "(" => self.closed(end)?,
                "." | "->" if self.is_name(end + 1) => end + 2,
                _ => break,
            };
            last = Some(end);
            end = next;
        }
        let is_dereferenced = at > 0 && self.is_dereference(at - 1);
        let is_access = last.is_some_and(|mark| self.word(mark) != "(") || is_dereferenced;
        let start = at - usize::from(is_dereferenced);
        is_access.then_some(Access { tokens: start..end, mark: last.unwrap_or(start) })
    }

    /// Whether it is a `*` that reads memory; `a * b` multiplies.
    fn is_dereference(&self, at: usize) -> bool {
        self.word(at) == "*" && at > 0 && !self.is_operand(at - 1)
    }

    /// Whether what stands there ends an operand.
    fn is_operand(&self, at: usize) -> bool {
        let word = self.word(at);
        matches!(word, ")" | "]")
            || word.starts_with(|c: char| c.is_alphanumeric() || c == '_') && word != "return"
    }

    /// The function that is called at a token.
    pub fn called(&self, at: usize) -> Option<&'a str> {
        (self.is_name(at) && self.word(at + 1) == "(").then(|| self.word(at))
    }

    /// Whether it is a mark that reads memory.
    pub fn is_read(&self, at: usize) -> bool {
        matches!(self.word(at), "[" | "->" | "->*") || self.is_dereference(at)
    }

    /// Whether a mark reads by what is not a single name: `*(p + i)`, `(*p)[i]`.
    pub fn is_read_by_several(&self, at: usize) -> bool {
        self.is_read(at)
            && if self.word(at) == "*" { !self.is_name(at + 1) } else { self.before(at) == ")" }
    }

    /// How often an access reads memory with what its name is of, the last included.
    pub fn reads(&self, access: &Access) -> usize {
        let (mut reads, mut at) = (0, access.tokens.start);
        while at < access.tokens.end {
            reads += usize::from(matches!(self.word(at), "[" | "->") || self.is_dereference(at));
            let is_open = matches!(self.word(at), "(" | "[");
            at = is_open.then(|| self.closed(at)).flatten().unwrap_or(at + 1);
        }
        reads
    }

    /// Whether the address is taken of what begins at `at`: `a & b` is another.
    pub fn is_address_taken(&self, at: usize) -> bool {
        self.before(at) == "&" && (at < 2 || !self.is_operand(at - 2))
    }

    /// Whether an iteration may go by a token of a loop's body. `passed` is a loop that does not count.
    pub fn is_conditional(&self, body: &Range<usize>, token: usize, passed: Option<&Loop>) -> bool {
        let is_end = |at: &usize| matches!(self.word(*at), ";" | "{" | "}");
        let start = (body.start..token).rev().find(is_end).unwrap_or(body.start);
        let is_choice = |at| matches!(self.word(at), "?" | "&&" | "||" | "and" | "or");
        let is_branch = |at| match self.word(at) {
            "continue" => true,
            "for" => {
                // What it begins with is done in any case.
                let header = self.loop_at(at).and_then(|one| one.header);
                let is_first = header.is_some_and(|header| header.init.contains(&token));
                let is_passed = passed.is_some_and(|passed| passed.all.start == at);
                !is_first && !is_passed && self.is_in(at, token)
            }
            "if" | "while" | "switch" | "catch" => {
                let open = at + 1 + usize::from(self.word(at + 1) == "constexpr");
                self.closed(open).is_none_or(|end| end <= token) && self.is_in(at, token)
            }
            _ => false,
        };
        !body.contains(&token)
            || (start..token).any(is_choice)
            || (body.start..token).any(is_branch)
    }

    /// Whether a token is in the statement that begins at `at`, as far as it can be told.
    fn is_in(&self, at: usize, token: usize) -> bool {
        self.statement(at).is_none_or(|end| token < end)
    }

    /// Whether a loop's body may end the loop.
    pub fn is_left(&self, body: &Range<usize>) -> bool {
        let is_own = |token: usize| {
            let mut before = body.start..token;
            !before.any(|at| {
                matches!(self.word(at), "for" | "while" | "do" | "switch") && self.is_in(at, token)
            })
        };
        body.clone().any(|at| match self.word(at) {
            "return" | "goto" | "throw" => true,
            "break" => is_own(at),
            _ => false,
        })
    }

    /// Whether its address needs another access, or a call.
    pub fn is_computed(&self, access: &Access) -> bool {
        let inner = access.tokens.start + 2..access.tokens.end;
        inner.into_iter().any(|at| self.access(at).is_some() || self.word(at) == "(")
    }
}

/// A memory access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Access {
    pub tokens: Range<usize>,
    /// Its last `[`, `.` or `->`.
    pub mark: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(source: &Source<'_>, range: &Range<usize>) -> String {
        range.clone().map(|at| source.word(at)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn loops_are_found_around_what_they_repeat() {
        let text =
            "void f() {\n for (i = a[0]; i < n; i++)\n  if (x) while (y) z(b[i]); else c[i]++;\n}";
        let source = Source::new(text);
        let at = |name: &str| (0..source.tokens.len()).find(|at| source.word(*at) == name).unwrap();
        assert_eq!(source.loops_around(at("a")), []);
        let [inner, outer] = &source.loops_around(at("b"))[..] else { panic!() };
        assert_eq!(
            (&inner.header, text_of(&source, &inner.body)),
            (&None, "z ( b [ i ] ) ;".into())
        );
        let header = outer.header.clone().unwrap();
        assert_eq!(text_of(&source, &header.condition), "i < n");
        assert_eq!(source.loops_around(at("c")), std::slice::from_ref(outer));
    }

    #[test]
    fn accesses_are_whole() {
        let text = "s += a * p->q[h(k[i])] + *r - t.u(v);";
        let source = Source::new(text);
        let all = (0..source.tokens.len()).filter_map(|at| source.access(at));
        let all: Vec<String> = all.map(|access| text_of(&source, &access.tokens)).collect();
        assert_eq!(all, ["p -> q [ h ( k [ i ] ) ]", "k [ i ]", "* r"]);
    }
}
