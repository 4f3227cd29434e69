//! HTTP/1: a request's head → which page → the bytes of the answer. Pure; `server` has the sockets.

use std::fmt::Write as _;

/// Longest head of a request in bytes.
pub const LONGEST_HEAD: usize = 8 << 10;
/// Most header lines.
const MOST_HEADERS: usize = 64;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page {
    /// `/metrics`.
    Metrics,
    /// `/healthz`.
    Health,
    /// `/`.
    Help,
}

/// A page, and how it is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// Which one.
    pub page: Page,
    /// With its body: not so for HEAD.
    pub has_body: bool,
    /// The client takes plain text and does not name OpenMetrics.
    pub is_plain: bool,
}

/// What a request comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Its head has not ended yet.
    Partial,
    /// A page.
    Asked(Asked),
    /// An answer without a page.
    Refused(Status),
}

/// Status of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// 200.
    Ok,
    /// 400.
    BadRequest,
    /// 404.
    NotFound,
    /// 405.
    MethodNotAllowed,
    /// 408.
    Timeout,
    /// 431.
    HeadTooLarge,
    /// 503.
    Unavailable,
}

impl Status {
    /// Number and reason.
    fn line(self) -> &'static str {
        match self {
            Self::Ok => "200 OK",
            Self::BadRequest => "400 Bad Request",
            Self::NotFound => "404 Not Found",
            Self::MethodNotAllowed => "405 Method Not Allowed",
            Self::Timeout => "408 Request Timeout",
            Self::HeadTooLarge => "431 Request Header Fields Too Large",
            Self::Unavailable => "503 Service Unavailable",
        }
    }
}

/// Reads the head of a request, as far as it has come. A body is never read: no page takes one.
pub fn request(bytes: &[u8]) -> Request {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if bytes.len() < LONGEST_HEAD => return Request::Partial,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return Request::Refused(Status::HeadTooLarge);
        }
        Err(_) => return Request::Refused(Status::BadRequest),
    }
    let path = parsed.path.unwrap_or_default();
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    let page = match path {
        "/metrics" => Page::Metrics,
        "/healthz" => Page::Health,
        "/" => Page::Help,
        _ => return Request::Refused(Status::NotFound),
    };
    let has_body = match parsed.method {
        Some("GET") => true,
        Some("HEAD") => false,
        _ => return Request::Refused(Status::MethodNotAllowed),
    };
    Request::Asked(Asked { page, has_body, is_plain: is_plain(parsed.headers) })
}

/// Whether `Accept` has plain text and not OpenMetrics: clients that take anything get OpenMetrics.
fn is_plain(headers: &[httparse::Header]) -> bool {
    let accepts = headers.iter().filter(|header| header.name.eq_ignore_ascii_case("accept"));
    let all: Vec<u8> = accepts.flat_map(|header| header.value.to_ascii_lowercase()).collect();
    let has = |kind: &[u8]| all.windows(kind.len()).any(|part| part == kind);
    has(b"text/plain") && !has(b"application/openmetrics-text")
}

/// The type of OpenMetrics.
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The type of Prometheus' own format.
pub const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The type of a line of text.
pub const PLAIN: &str = "text/plain; charset=utf-8";

/// The bytes of an answer, after which the connection closes.
pub fn answer(status: Status, kind: &str, body: &str, has_body: bool) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {}\r\n", status.line());
    if status == Status::MethodNotAllowed {
        head += "Allow: GET, HEAD\r\n";
    }
    // A String takes everything.
    let _ = write!(
        head,
        "Content-Type: {kind}\r\nContent-Length: {}\r\nX-Content-Type-Options: nosniff\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    let mut bytes = head.into_bytes();
    if has_body {
        bytes.extend_from_slice(body.as_bytes());
    }
    bytes
}

/// An answer without a page: its status in words.
pub fn refusal(status: Status) -> Vec<u8> {
    answer(status, PLAIN, &format!("{}\n", status.line()), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_to_pages_or_refusals() {
        let of = |text: &str| request(text.as_bytes());
        let asked = |page, has_body, is_plain| Request::Asked(Asked { page, has_body, is_plain });
        let usual = "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n";
        assert_eq!(of(usual), asked(Page::Metrics, true, false));
        assert_eq!(of("HEAD /healthz?a=b HTTP/1.0\r\n\r\n"), asked(Page::Health, false, false));
        let plain = "GET /metrics HTTP/1.1\r\naccept: Text/Plain;q=0.5\r\n\r\n";
        assert_eq!(of(plain), asked(Page::Metrics, true, true));
        let both = plain.replace("Text", "application/openmetrics-text;version=1.0.0,text");
        assert_eq!(of(&both), asked(Page::Metrics, true, false));
        assert_eq!(of("GET / HTTP/1.1\r\nHo"), Request::Partial);
        let refused = [
            ("POST /metrics HTTP/1.1\r\nContent-Length: 9\r\n\r\n", Status::MethodNotAllowed),
            ("GET /../etc HTTP/1.1\r\n\r\n", Status::NotFound),
            ("\x16\x03\x01\x02", Status::BadRequest),
            ("GET / HTTP/9\r\n\r\n", Status::BadRequest),
        ];
        for (text, status) in refused {
            assert_eq!(of(text), Request::Refused(status), "{text:?}");
        }
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(MOST_HEADERS + 1));
        assert_eq!(of(&many), Request::Refused(Status::HeadTooLarge));
        let long = format!("GET / HTTP/1.1\r\nA: {}", "b".repeat(LONGEST_HEAD));
        assert_eq!(of(&long), Request::Refused(Status::HeadTooLarge));
    }

    #[test]
    fn an_answer_to_head_has_the_length_and_no_body() {
        let bytes = String::from_utf8(answer(Status::Ok, PLAIN, "text\n", false)).expect("text");
        assert!(bytes.contains("Content-Length: 5\r\n") && bytes.ends_with("\r\n\r\n"), "{bytes}");
    }
}
