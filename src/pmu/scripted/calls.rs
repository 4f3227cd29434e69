//! The calls of the simulated kernel.

use super::{Scripted, State};
use crate::kernel::{Event, Handle, Kernel, Usage, Wake};
use crate::{Command, Control, Exit};
use nix::errno::Errno;
use std::path::Path;
use std::time::Duration;
use tma::error::{Error, Result};

impl Kernel for Scripted {
    fn open(
        &mut self,
        event: &Event,
        leader: Option<Handle>,
    ) -> std::result::Result<Handle, Errno> {
        if let Some(errno) = self.refuse(event, leader) {
            return Err(errno);
        }
        self.opened.push((*event, leader));
        let at = self.so_far.events.len();
        self.so_far.members.entry(leader.map_or(at, |l| l.0)).or_default().push(at);
        self.so_far.events.push(Some(State {
            event: *event,
            leader: leader.map_or(at, |l| l.0),
            on: false,
            enabled: Duration::ZERO,
            running: Duration::ZERO,
            value: 0.0,
        }));
        Ok(Handle(at))
    }

    fn close(&mut self, event: Handle) {
        if let Some(state) = self.so_far.events[event.0].take()
            && let Some(members) = self.so_far.members.get_mut(&state.leader)
        {
            members.retain(|member| *member != event.0);
        }
    }

    fn enable(&mut self, leader: Handle) -> std::result::Result<(), Errno> {
        self.so_far.events[leader.0].as_mut().ok_or(Errno::EBADF)?.on = true;
        Ok(())
    }

    fn disable(&mut self, leader: Handle) -> std::result::Result<(), Errno> {
        self.so_far.events[leader.0].as_mut().ok_or(Errno::EBADF)?.on = false;
        Ok(())
    }

    fn read(&mut self, leader: Handle, words: &mut Vec<u64>) -> std::result::Result<(), Errno> {
        let event = self.so_far.events[leader.0].as_ref().map(|s| s.event).ok_or(Errno::EBADF)?;
        if Self::is_hardware(&event) {
            self.read += 1;
            self.advance(self.so_far.now + self.reading);
        }
        let first = self.so_far.events[leader.0].as_ref().ok_or(Errno::EBADF)?;
        let now = self.so_far.now;
        let fails = |(config, from, to): &(u64, Duration, Duration)| {
            *config == first.event.encoding.config && (*from..*to).contains(&now)
        };
        if Self::is_hardware(&first.event) && self.unreadable.iter().any(fails) {
            return Err(Errno::EIO);
        }
        let times = [first.enabled.as_nanos() as u64, first.running.as_nanos() as u64];
        words.clear();
        if !first.event.group_read {
            words.push(first.value as u64);
            words.extend(times);
            return Ok(());
        }
        let apart = first.event.cpu.is_some_and(|cpu| self.has_left(cpu));
        let members = if apart { vec![leader.0] } else { self.members(leader.0) };
        words.push(members.len() as u64);
        words.extend(times);
        words.extend(members.iter().flat_map(|m| &self.so_far.events[*m]).map(|s| s.value as u64));
        Ok(())
    }

    fn visit(&mut self, cpu: Option<u32>) {
        self.visited.push(cpu);
    }

    fn here(&mut self) -> Option<u32> {
        // It stays where it was last.
        self.visited.iter().rev().find_map(|cpu| *cpu)
    }

    fn runs(&mut self, leader: Handle, _: Option<&[u32]>, timeout: Duration) -> Option<bool> {
        // No time passes: what would run in the next periods.
        let mut leaders = self.leaders_on();
        leaders.push(leader.0);
        let periods = timeout.as_nanos() / self.rotation.as_nanos().max(1);
        let periods = 0..=usize::try_from(periods).unwrap_or(usize::MAX);
        let mut runs = periods.map(|p| self.scheduled(&leaders, self.so_far.rotations + p));
        Some(runs.any(|r| r.contains(&leader.0)))
    }

    fn open_cgroup(&mut self, folder: &Path) -> Result<Handle> {
        if folder.ends_with("absent") {
            return Err(Error::failed("there is no control group absent"));
        }
        Ok(Handle(0))
    }

    fn raise_file_limit(&mut self) -> bool {
        let raised = self.files.1 > self.files.0;
        self.files.0 = self.files.1;
        raised
    }

    fn threads(&mut self, _: i32) -> std::result::Result<Vec<i32>, Errno> {
        if self.threads.is_empty() { Err(Errno::ESRCH) } else { Ok(self.threads.clone()) }
    }

    fn busy(&mut self, cpus: &[u32]) -> Option<Duration> {
        let busy = |cpu: &u32| {
            let left = self.leaving.iter().find(|(_, left)| left == cpu).map(|(when, _)| *when);
            let until = left.map_or(self.so_far.now, |when| when.min(self.so_far.now));
            self.loads.get(cpu).map(|load| until.mul_f64(*load))
        };
        cpus.iter().map(busy).sum()
    }

    fn now(&mut self) -> Duration {
        self.so_far.now
    }

    fn seed(&mut self) -> u64 {
        self.seed
    }

    fn prepare(&mut self, _: &Command) -> Result<i32> {
        (self.so_far.began, self.so_far.ended) = (None, None);
        Ok(4711)
    }

    fn start(&mut self) -> Result<()> {
        if let Some(error) = &self.exec_error {
            return Err(error.clone());
        }
        self.started += 1;
        self.so_far.began = Some(self.so_far.now);
        for state in self.so_far.events.iter_mut().flatten() {
            state.on |= state.event.enable_on_exec;
        }
        Ok(())
    }

    fn listen(&mut self, _: &Control) -> Result<()> {
        Ok(())
    }

    fn acknowledge(&mut self) {
        self.acknowledged += 1;
    }

    fn watch(&mut self, _: i32) -> Result<()> {
        self.so_far.began = Some(self.so_far.now);
        Ok(())
    }

    fn wait(&mut self, until: Option<Duration>) -> Wake {
        if self.so_far.ended.is_some() {
            return Wake::Exited;
        }
        let end = self.so_far.began.map(|b| b + self.lifetime);
        let signal = self.signals.first().map(|s| s.0.max(self.so_far.now));
        let order = self.orders.first().map(|order| order.0.max(self.so_far.now));
        let next = [until, end, signal, order].into_iter().flatten().min();
        let next = next.unwrap_or(self.so_far.now);
        self.advance(next);
        if let Some((from, length)) = self.stalls.first().copied()
            && next >= from
        {
            self.stalls.remove(0);
            self.advance(from + length);
        }
        if signal == Some(next) {
            let (_, number, from_terminal) = self.signals.remove(0);
            if from_terminal && !self.stubborn && !self.deaf {
                self.so_far.ended = Some(Exit::Signal(number));
            }
            return Wake::Signal { number, from_terminal };
        }
        if order == Some(next) {
            return Wake::Control(self.orders.remove(0).1);
        }
        if end == Some(next) {
            if !self.threads.is_empty() {
                return Wake::TargetEnded;
            }
            self.so_far.ended = Some(self.exit);
            return Wake::Exited;
        }
        Wake::Time
    }

    fn signal(&mut self, number: i32) {
        self.sent.push(number);
        let stubborn = self.stubborn && number == libc::SIGINT;
        let deaf = self.deaf && number != libc::SIGKILL;
        if self.so_far.ended.is_none() && !stubborn && !deaf {
            self.so_far.ended = Some(Exit::Signal(number));
        }
    }

    fn reap(&mut self) -> Option<(Exit, Usage)> {
        let began = self.so_far.began.take()?;
        let seconds = self.so_far.now.saturating_sub(began).as_secs_f64();
        let usage = Usage { cpu_seconds: seconds, context_switches: 7, ..Usage::default() };
        (!self.reaped_elsewhere).then(|| (self.so_far.ended.unwrap_or(self.exit), usage))
    }
}
