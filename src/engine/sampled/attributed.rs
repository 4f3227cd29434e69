//! The samples of a recording attributed to its code, as far as the recording has what is asked for.

use super::code::CodeAsk;
use profile::hot::{Filter, Profile, ThreadWord, overview};
use profile::record::Record;
use profile::recording::Source;
use tma::{Error, Result};

/// Attributes the samples of a recording as asked.
///
/// # Errors
/// An event or thread that the recording does not have; it cannot be read.
pub fn profile(source: &dyn Source, ask: &CodeAsk) -> Result<Profile> {
    let recording = source.about();
    if let Some(event) = ask.filter.event
        && event >= recording.events.len()
    {
        let names: Vec<&str> = recording.events.iter().map(|e| e.name.as_str()).collect();
        return Err(Error::usage(format!("the recording has no event {event}")).because(format!(
            "it has {}: {}",
            names.len(),
            names.join(", ")
        )));
    }
    known_threads(source, &ask.filter)?;
    let mut profile = Profile::new(source, &ask.filter, ask.search.clone())?;
    profile.find_lines(ask.functions);
    profile.find_hottest_lines(ask.functions);
    Ok(profile)
}

/// Refuses a time without samples, and says when there are some.
///
/// # Errors
/// There are none in the time asked for; the recording cannot be read.
pub(crate) fn known_time(source: &dyn Source, filter: &Filter) -> Result<()> {
    let Some((from, to)) = filter.time else { return Ok(()) };
    let wanted = filter.event_of(source.about());
    let (mut first, mut last, mut is_there) = (None, 0, false);
    source.each(&mut |record| {
        if let Record::Sample { event, sample } = record
            && *event == wanted
            && let Some(time) = sample.time
        {
            let after = time.saturating_sub(*first.get_or_insert(time));
            last = last.max(after);
            is_there |= (from..to).contains(&after);
        }
    })?;
    if is_there {
        return Ok(());
    }
    let until = match to {
        u64::MAX => "on".to_owned(),
        to => format!("to {} s", to as f64 / 1e9),
    };
    let error = Error::failed(format!("no samples from {} s {until}", from as f64 / 1e9));
    Err(match first {
        Some(_) => error
            .because(format!("the samples are from 0 s to {:.3} s", last as f64 / 1e9))
            .hint("--time FROM..TO counts seconds from the first sample"),
        None => error.because("the samples have no times").hint("leave out --time"),
    })
}

/// Refuses a thread without samples, and lists those that have some.
fn known_threads(source: &dyn Source, filter: &Filter) -> Result<()> {
    /// Names that an error lists.
    const TOLD: usize = 12;
    if filter.threads.is_empty() {
        return Ok(());
    }
    let found = overview(source)?;
    let threads = &found.threads;
    // A thread may have had the name before its last sample: only one that no thread record has is unknown.
    let is_unknown = |word: &&ThreadWord| {
        !threads.iter().any(|t| Some(t.tid) == word.number || t.name == word.name)
            && !word.number.is_some_and(|number| found.processes.contains(&number))
            && !found.names.contains(&word.name)
    };
    let Some(ThreadWord { name: wanted, .. }) = filter.threads.iter().find(is_unknown) else {
        return Ok(());
    };
    let mut names: Vec<&str> = threads.iter().map(|t| t.name.as_str()).collect();
    names.retain(|name| !name.is_empty());
    let mut told: Vec<&str> = Vec::new();
    for name in names.iter().copied() {
        if !told.contains(&name) {
            told.push(name);
        }
    }
    let more =
        if told.len() > TOLD { format!(" and {} more", told.len() - TOLD) } else { String::new() };
    told.truncate(TOLD);
    let error = Error::failed(format!("no samples of a thread {wanted}"));
    let error = match told.is_empty() {
        true => error.because("its threads have no names"),
        false => error.because(format!("it has samples of {}{more}", told.join(", "))),
    };
    Err(match tma::error::nearest(wanted, names) {
        Some(other) => error.hint(format!("did you mean `{other}`?")),
        None => error,
    })
}
