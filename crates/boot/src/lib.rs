//! Starts the kernel of one project and keeps it alive: the one part that nothing else watches over.
//!
//! **Invariant.** The standard library alone, under 500 lines, which a test counts. It knows one message,
//! the ping, and no business: whoever wants more asks the kernel.
//!
//! **Invariant.** [`run`] never leaves a kernel behind. Where this process dies without returning, the
//! kernel's standard input ends, and with it the kernel.

mod configuration;
mod life;
mod machine;
mod trouble;

use std::io::Write;
use std::time::Duration;

pub use configuration::{Boot, Runtime, parse};
use life::{Life, is_answered};
pub use machine::Machine;
pub use trouble::Trouble;

/// A kernel is started again so often within this time.
const RESTARTS: usize = 3;
const WINDOW: Duration = Duration::from_secs(5 * 60);

/// Keeps the kernel alive on this machine; gives the exit code when it has ended for good.
///
/// On `report` there is a line `{"ready":true,"pid":n}` whenever a kernel answers (`null` for one that
/// was there already), and the [`Trouble`] if that is the end. Whether anybody reads it is all the same.
pub fn run(boot: &Boot, report: &mut dyn Write) -> u8 {
    run_on(&Machine::here(), boot, report)
}

/// [`run`], on that machine.
pub fn run_on(machine: &Machine, boot: &Boot, report: &mut dyn Write) -> u8 {
    let Err(trouble) = (Watch { machine, boot, report }).keep() else { return 0 };
    tell(report, &trouble.to_line());
    trouble.code
}

struct Watch<'a> {
    machine: &'a Machine,
    boot: &'a Boot,
    report: &'a mut dyn Write,
}

impl Watch<'_> {
    fn keep(&mut self) -> Result<(), Trouble> {
        self.machine.missing(self.boot.runtime).map_or(Ok(()), Err)?;
        // One that is there already needs no other, which would only take its log away.
        if self.another_answers(Duration::ZERO) {
            return Ok(());
        }
        let mut restarts: Vec<Duration> = Vec::new();
        loop {
            let unable =
                |why: String| Trouble::new(2, "no kernel can be started", &why, "look there");
            let mut life = Life::begin(self.boot).map_err(unable)?;
            let Some(why) = self.watch(&mut life)? else { return Ok(()) };
            let now = (self.machine.clock)();
            restarts.retain(|at| now.saturating_sub(*at) < WINDOW);
            if restarts.len() >= RESTARTS {
                let what = "the kernel does not stay up: 3 new starts in 5 minutes did not help";
                return Err(self.trouble(&life, 1, &format!("{what}, {why}")));
            }
            restarts.push(now);
        }
    }

    /// Until the end of this life: nothing if it was the right one, or why another is wanted.
    fn watch(&mut self, life: &mut Life) -> Result<Option<String>, Trouble> {
        let (end, mut ended) = ((self.machine.clock)().saturating_add(self.boot.patience), None);
        let answered = is_answered(&self.boot.socket, &mut || {
            ended = life.child.try_wait().transpose();
            ended.is_some() || (self.machine.clock)() >= end
        });
        if answered {
            tell(self.report, &format!(r#"{{"ready":true,"pid":{}}}"#, life.child.id()));
            ended = Some(life.child.wait());
        }
        let Some(Ok(status)) = ended else {
            return Ok(Some(format!("it did not answer in {:?}", self.boot.patience)));
        };
        match status.code() {
            Some(0) if answered => Ok(None),
            Some(0) => Err(self.trouble(life, 1, "the kernel ended before it answered")),
            // Another kernel has the project. If it does not answer, it may be just starting or ending.
            Some(75) if self.another_answers(self.boot.patience / 3) => Ok(None),
            Some(75) => Ok(Some("another kernel is there and does not answer".to_owned())),
            Some(code @ (2 | 4 | 6)) => Err(self.trouble(life, code as u8, "the kernel refuses")),
            Some(_) | None => Ok(Some(format!("it ended with {status}"))),
        }
    }

    /// Whether a kernel that is not ours answers, which is told.
    fn another_answers(&mut self, patience: Duration) -> bool {
        let end = (self.machine.clock)().saturating_add(patience);
        let answered = is_answered(&self.boot.socket, &mut || (self.machine.clock)() >= end);
        if answered {
            tell(self.report, r#"{"ready":true,"pid":null}"#);
        }
        answered
    }

    /// What a kernel that refuses wrote to its log, or else what the machine or the log's end says.
    fn trouble(&self, life: &Life, code: u8, what: &str) -> Trouble {
        let words = life.last_words();
        let told = words.lines().rev().find_map(Trouble::from_line).filter(|_| code != 1);
        let suspect = || self.machine.suspect(&self.boot.program).filter(|_| code == 4);
        let trouble = told.or_else(suspect).unwrap_or_else(|| {
            let fix = format!("read `{}`, and run `fluffy doctor`", self.boot.log.display());
            Trouble::new(code, what, &words, &fix)
        });
        Trouble { code, ..trouble }
    }
}

/// That nobody listens is no reason to stop.
fn tell(report: &mut dyn Write, line: &str) {
    let _ = report.write_all(format!("{line}\n").as_bytes()).and_then(|()| report.flush());
}
