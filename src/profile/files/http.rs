//! Receiving a file by HTTP.

use super::request::{Failure, Limits};
use std::fs::File;
use std::io::{self, Read as _};
use ureq::Agent;

/// Most redirections of a request.
const MOST_REDIRECTIONS: u32 = 3;

/// Receives the file at `url`, within limits.
pub(super) fn receive(url: &str, limits: Limits, mut file: &File) -> Result<(), Failure> {
    let agent: Agent = Agent::config_builder()
        .timeout_global(Some(limits.time))
        .max_redirects(MOST_REDIRECTIONS)
        .http_status_as_error(false)
        .user_agent(concat!("tdtool/", env!("CARGO_PKG_VERSION")))
        .build()
        .into();
    let silent = |error: ureq::Error| Failure::Server(error.to_string());
    let mut response = agent.get(url).call().map_err(silent)?;
    match response.status().as_u16() {
        200 => {}
        404 => return Err(Failure::Absent),
        status => return Err(Failure::Server(format!("it answers with status {status}"))),
    }
    let most = limits.bytes;
    let reader = response.body_mut().with_config().limit(u64::MAX).reader();
    // One byte more shows that there are too many.
    let mut reader = reader.take(most.saturating_add(1));
    match io::copy(&mut reader, &mut file) {
        Ok(length) if length > most => Err(Failure::File(format!("it has more than {most} bytes"))),
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::Server(error.to_string())),
    }
}
