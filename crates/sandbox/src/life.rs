//! The life of one sandbox, whatever it is made with: made, started, waited for, taken away.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::config::Config;
use crate::job::{Captured, Job, Outcome, Watcher};
use crate::native::cgroup::Used;
use crate::native::supervise::{Running, Supervisor};
use crate::native::{lock, outside};
use crate::runtime::{Inspection, RuntimeError, Sandbox, State};

/// How one kind of sandbox is set up and taken away.
pub(crate) trait Make: Send + Sync {
    /// Sets it up and starts the job. What fails leaves nothing behind that [`remove`](Make::remove) does not take away.
    fn begin(
        &self,
        config: &Config,
        job: Job,
        watcher: Arc<dyn Watcher>,
    ) -> Result<Supervisor, RuntimeError>;

    /// What it uses now.
    fn used(&self) -> Used;

    /// Takes away what it was made of. May be called again.
    fn remove(&self);
}

/// One sandbox.
pub(crate) struct Lived<M: Make> {
    id: String,
    make: M,
    life: Arc<(Mutex<Life>, Condvar)>,
}

/// Where a sandbox is in its life, with what it holds there.
struct Life {
    state: State,
    /// Until it is started.
    plan: Option<(Config, Job)>,
    /// From its start until it is taken away.
    running: Option<Arc<Running>>,
    /// Whether it was to be killed while it was being set up.
    killed: bool,
    /// What it had printed when it was taken away.
    logs: (Captured, Captured),
    /// What it holds while it runs: volumes are not removed under it.
    held: Option<Config>,
    outcome: Option<Result<Outcome, RuntimeError>>,
}

impl Life {
    fn kill(&mut self) {
        match &self.running {
            Some(running) => running.kill(),
            // While it is set up there is nothing to kill yet, and there will be.
            None => self.killed |= self.state == State::Creating && self.plan.is_none(),
        }
    }
}

impl<M: Make> Lived<M> {
    /// A sandbox that does not run yet.
    pub(crate) fn new(id: String, make: M, config: Config, job: Job) -> Self {
        let life = Life {
            state: State::Creating,
            plan: Some((config, job)),
            running: None,
            killed: false,
            logs: <(Captured, Captured)>::default(),
            held: None,
            outcome: None,
        };
        Self { id, make, life: Arc::new((Mutex::new(life), Condvar::new())) }
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        lock(&self.life.0)
    }

    fn running(&self) -> Option<Arc<Running>> {
        self.life().running.clone()
    }

    /// Starts the job; whoever called has to watch it.
    fn set_running(&self, watcher: Arc<dyn Watcher>) -> Result<Supervisor, RuntimeError> {
        let mut life = self.life();
        let state = life.state;
        let (config, job) = life.plan.take().ok_or(RuntimeError::State(state))?;
        drop(life);
        let begun = self.make.begin(&config, job, watcher);
        let mut life = self.life();
        if life.state == State::Destroyed {
            // It was taken away meanwhile: what was begun ends with its last owner.
            drop(life);
            drop(begun);
            self.remove();
            return Err(RuntimeError::State(State::Destroyed));
        }
        let supervisor = begun.inspect_err(|_| life.state = State::Failed)?;
        life.state = State::Running;
        life.running = Some(Arc::clone(&supervisor.running));
        life.held = Some(config);
        if life.killed {
            supervisor.running.kill();
        }
        Ok(supervisor)
    }
}

/// Watches a job to its end, and has everybody know of it.
fn watch_to_end((life, ended): &(Mutex<Life>, Condvar), supervisor: Supervisor) {
    let outcome = supervisor.watch();
    let mut life = lock(life);
    life.state = if outcome.is_ok() { State::Cleanup } else { State::Failed };
    life.outcome = Some(outcome);
    ended.notify_all();
}

impl<M: Make> Sandbox for Lived<M> {
    fn id(&self) -> &str {
        &self.id
    }

    fn start(&self, watcher: Arc<dyn Watcher>) -> Result<(), RuntimeError> {
        let supervisor = self.set_running(watcher)?;
        let (life, running) = (Arc::clone(&self.life), Arc::clone(&supervisor.running));
        let watched = thread::Builder::new().name(self.id.clone()).spawn(move || {
            watch_to_end(&life, supervisor);
        });
        if let Err(error) = watched {
            running.kill();
            self.life().state = State::Failed;
            self.life.1.notify_all();
            return Err(outside("no thread can be started")(error));
        }
        Ok(())
    }

    /// On the calling thread, which has nothing else to do: no other one has to be started and woken.
    fn run(&self, watcher: Arc<dyn Watcher>) -> Result<Outcome, RuntimeError> {
        let supervisor = self.set_running(watcher)?;
        watch_to_end(&self.life, supervisor);
        self.wait()
    }

    fn wait(&self) -> Result<Outcome, RuntimeError> {
        let mut life = self.life();
        loop {
            let state = life.state;
            match life.outcome.take() {
                Some(Ok(outcome)) => {
                    life.outcome = Some(Ok(outcome.clone()));
                    return Ok(outcome);
                }
                Some(Err(error)) => return Err(error),
                None if matches!(state, State::Running | State::Stopping) => {
                    life = self.life.1.wait(life).unwrap_or_else(PoisonError::into_inner);
                }
                None => return Err(RuntimeError::State(state)),
            }
        }
    }

    fn stop(&self, grace: Duration) {
        let mut life = self.life();
        if let (State::Running, Some(running)) = (life.state, life.running.clone()) {
            life.state = State::Stopping;
            drop(life);
            running.stop(grace);
        }
    }

    fn kill(&self) {
        self.life().kill();
    }

    fn pause(&self) -> Result<(), RuntimeError> {
        let state = self.life().state;
        let running = self.running().filter(|_| state == State::Running);
        let running = running.ok_or(RuntimeError::State(state))?;
        running.pause().map_err(outside("the sandbox cannot be paused"))
    }

    fn resume(&self) -> Result<(), RuntimeError> {
        let state = self.life().state;
        let running = self.running().ok_or(RuntimeError::State(state))?;
        running.resume().map_err(outside("the sandbox cannot be resumed"))
    }

    fn inspect(&self) -> Inspection {
        let (state, running) = {
            let life = self.life();
            (life.state, life.running.clone())
        };
        let used = self.make.used();
        Inspection {
            state,
            paused: running.as_ref().is_some_and(|running| running.is_paused()),
            pid: running.filter(|_| state == State::Running).and_then(|running| running.pid()),
            processes: used.processes,
            memory: used.memory,
        }
    }

    fn logs(&self) -> (Captured, Captured) {
        let life = self.life();
        life.running.as_ref().map_or_else(|| life.logs.clone(), |running| running.logs())
    }

    fn remove(&self) {
        self.kill();
        let mut life = self.life();
        while matches!(life.state, State::Running | State::Stopping) {
            life = self.life.1.wait(life).unwrap_or_else(PoisonError::into_inner);
        }
        life.state = State::Destroyed;
        life.plan = None;
        life.held = None;
        if let Some(running) = life.running.take() {
            life.logs = running.logs();
        }
        drop(life);
        self.make.remove();
    }
}

impl<M: Make> Drop for Lived<M> {
    fn drop(&mut self) {
        self.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::Template;

    fn life(plan: Option<(Config, Job)>) -> Life {
        Life {
            state: State::Creating,
            plan,
            running: None,
            killed: false,
            logs: <(Captured, Captured)>::default(),
            held: None,
            outcome: None,
        }
    }

    #[test]
    fn what_is_killed_while_it_is_set_up_does_not_get_away() {
        let mut being_set_up = life(None);
        being_set_up.kill();
        assert!(being_set_up.killed);
        // Before that there is nothing that could be killed.
        let mut waiting = life(Some((Config::of(Template::CodeExecutor), Job::new("true"))));
        waiting.kill();
        assert!(!waiting.killed);
    }
}
