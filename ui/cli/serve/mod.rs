//! `tdtool serve`: metrics of this host over HTTP, measured in the background.
//!
//! | file | concern |
//! |---|---|
//! | `http` | requests and answers |
//! | `server` | connections |

mod http;
mod server;

use super::files::print;
use super::measure::usage;
use super::options::{Global, Invalid, number};
use crate::message;
use clap::Args;
use engine::host::{HostAsk, Meter, Update, kept_name, own_cost};
use fleet::metrics::{Exporter, Form};
use http::{Asked, OPEN_METRICS, PLAIN, PROMETHEUS, Page, Status, answer};
use pmu::perf::Signals;
use smol_str::SmolStr;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tma::{Error, Result};

/// Intervals without a result after which the host counts as not measured.
const PATIENCE: u32 = 3;
/// What `/` says.
const HELP: &str = "tdtool serve: /metrics (OpenMetrics), /healthz\n";

#[derive(Args)]
#[command(after_help = "\
Examples:
  tdtool serve                              http://127.0.0.1:9862/metrics
  tdtool serve --cgroup system.slice/nginx.service --command postgres

It has neither TLS nor passwords: put a proxy before it to listen elsewhere.")]
pub struct ServeArgs {
    /// Address and port to listen on; port 0 chooses one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:9862")]
    listen: SocketAddr,
    /// Length of an interval in seconds
    #[arg(long, value_name = "S", default_value = "10", value_parser = seconds)]
    interval: Duration,
    /// Metrics of each socket, too
    #[arg(long)]
    per_socket: bool,
    /// Metrics of a cgroup, too (path below the cgroup mount); repeatable
    #[arg(long, value_name = "PATH")]
    cgroup: Vec<PathBuf>,
    /// CPU time and page faults of processes of this name, too; repeatable
    #[arg(long, value_name = "NAME")]
    command: Vec<String>,
    /// Shares of `report --estimate --format json`, too; repeatable
    #[arg(long, value_name = "FILE")]
    estimate: Vec<PathBuf>,
    /// Most series; what exceeds them is left out and counted
    #[arg(long, value_name = "N", default_value = "2000", value_parser = number(100, 1_000_000))]
    max_series: u64,
}

/// A value of `--interval`.
fn seconds(text: &str) -> std::result::Result<Duration, Invalid> {
    let number: Option<f64> = text.parse().ok().filter(|n| (0.1..=86_400.0).contains(n));
    number.map(Duration::from_secs_f64).ok_or(Invalid::Seconds)
}

pub fn run(global: &Global, args: ServeArgs) -> Result<ExitCode> {
    let listener = listen(args.listen)?;
    let address = listener.local_addr().map_err(|e| cannot_listen(args.listen, &e))?;
    let settings = global.settings()?;
    let ask = args.ask(settings.uarch.clone(), settings.core()?);
    let meter = Meter::prepare(settings.machine(), settings.library, ask)?;
    let most = usize::try_from(args.max_series).unwrap_or(usize::MAX);
    let exporter = Exporter::new(&meter.host(), args.interval.as_secs_f64(), most);
    let state = State::new(exporter, args.interval);
    // From here on: before, a signal ends the program at once.
    let signals = Signals::catch()?;
    if !address.ip().is_loopback() {
        message::note(
            "everyone who reaches this address can read the metrics: no TLS, no passwords",
        );
    }
    print(&format!("http://{address}/metrics\n"))?;
    std::thread::scope(|threads| {
        threads.spawn(|| meter.run(&|update| state.take(update)));
        let served = server::serve(&listener, signals.as_fd(), &|asked| state.page(asked));
        meter.end();
        served
    })?;
    Ok(ExitCode::SUCCESS)
}

impl ServeArgs {
    fn ask(&self, uarch: Option<String>, core: Arc<tma::Core>) -> HostAsk {
        HostAsk {
            uarch,
            core,
            interval: self.interval,
            per_socket: self.per_socket,
            cgroups: distinct(&self.cgroup),
            commands: distinct(&self.command).iter().map(SmolStr::new).collect(),
            estimates: self.estimate.clone(),
        }
    }

    /// Refuses contradictory options.
    pub fn check(&self) -> Result<()> {
        if self.command.iter().any(String::is_empty) {
            return Err(usage("--command takes the name of a process", "`ps -eo comm` lists them"));
        }
        let names = distinct(&self.command);
        let kept: Vec<&[u8]> = names.iter().map(|name| kept_name(name)).collect();
        if distinct(&kept).len() < kept.len() {
            return Err(usage(
                "two names of --command are the same to the kernel",
                "it keeps 15 bytes of each; `ps -eo comm` lists them",
            ));
        }
        Ok(())
    }
}

/// Each once: two of the same would add up to twice the counts.
fn distinct<T: Clone + PartialEq>(all: &[T]) -> Vec<T> {
    let mut kept = Vec::new();
    for one in all {
        if !kept.contains(one) {
            kept.push(one.clone());
        }
    }
    kept
}

fn listen(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).map_err(|e| cannot_listen(address, &e))
}

fn cannot_listen(address: SocketAddr, cause: &std::io::Error) -> Error {
    let remedy = match cause.kind() {
        std::io::ErrorKind::AddrInUse => {
            "another program, or another `tdtool serve`, has this port: choose one with --listen 127.0.0.1:PORT"
        }
        std::io::ErrorKind::PermissionDenied => "choose a port above 1023 with --listen",
        _ => "--listen takes an address of this host, such as 127.0.0.1:9862",
    };
    Error::failed(format!("cannot listen on {address}")).because(cause).hint(remedy)
}

/// What measurements have found, and the text of it.
struct State {
    found: Mutex<Found>,
    interval: Duration,
}

struct Found {
    exporter: Exporter,
    texts: Texts,
    /// When the host was measured last, and since when it is.
    last: Option<Instant>,
    begun: Instant,
    /// Why a measurement failed in its last interval.
    failed: Vec<(usize, Error)>,
}

/// The metrics, made once an interval: scrapes only send them.
struct Texts {
    open_metrics: Arc<str>,
    prometheus: Arc<str>,
}

impl Texts {
    fn of(exporter: &Exporter) -> Self {
        let text = |form| exporter.text(form).unwrap_or_default().into();
        Self { open_metrics: text(Form::OpenMetrics), prometheus: text(Form::Prometheus) }
    }
}

impl State {
    fn new(exporter: Exporter, interval: Duration) -> Self {
        let texts = Texts::of(&exporter);
        let (last, begun, failed) = (None, Instant::now(), Vec::new());
        Self { found: Mutex::new(Found { exporter, texts, last, begun, failed }), interval }
    }

    fn take(&self, update: Update) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.failed.retain(|(number, _)| *number != update.measurement);
        match update.failed {
            Some(error) => {
                found.exporter.fail();
                found.failed.push((update.measurement, error));
            }
            None if update.measurement == 0 => found.last = Some(Instant::now()),
            None => {}
        }
        found.exporter.add(update.measurement, &update.rows);
        if let Some(cost) = own_cost() {
            found.exporter.set_cost(cost);
        }
        found.texts = Texts::of(&found.exporter);
    }

    fn page(&self, asked: Asked) -> Vec<u8> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let (status, kind, body) = match asked.page {
            Page::Metrics if asked.is_plain => {
                (Status::Ok, PROMETHEUS, Arc::clone(&found.texts.prometheus))
            }
            Page::Metrics => (Status::Ok, OPEN_METRICS, Arc::clone(&found.texts.open_metrics)),
            Page::Help => (Status::Ok, PLAIN, HELP.into()),
            Page::Health => match found.unhealthy(self.interval) {
                None => (Status::Ok, PLAIN, "ok\n".into()),
                Some(reason) => (Status::Unavailable, PLAIN, format!("{reason}\n").into()),
            },
        };
        drop(found);
        answer(status, kind, &body, asked.has_body)
    }
}

impl Found {
    /// Why the last interval is not there; `None`: it is.
    fn unhealthy(&self, interval: Duration) -> Option<String> {
        if let Some((_, error)) = self.failed.first() {
            return Some(error.to_string());
        }
        let late = self.last.unwrap_or(self.begun).elapsed() > interval * PATIENCE;
        match self.last {
            None if !late => Some("the first interval has not ended yet".to_owned()),
            _ if late => {
                Some(format!("no interval has ended in {} s", (interval * PATIENCE).as_secs()))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_twice_is_asked_for_once() {
        let paths = ["a/b", "c", "a/b/", "/c"].map(PathBuf::from);
        assert_eq!(distinct(&paths), ["a/b", "c", "/c"].map(PathBuf::from));
    }
}
