//! The attacks. Each tries, and reports what came back; whether it was stopped is judged outside.

mod files;
mod kernel;
mod leaks;
mod mounts;
mod network;
mod outward;
mod process;
mod resources;
mod terminal;
mod work;

use std::io;

pub(crate) use crate::spec::Report;
use crate::sys;

/// Runs one attack and prints its report. Refuses to on the bare machine, where it would succeed.
pub(crate) fn run(args: &[String]) {
    let users = std::fs::read_to_string("/proc/self/uid_map").expect("users are mapped");
    let all = users.split_whitespace().eq(["0", "0", "4294967295"]);
    assert!(
        !all || is_held(),
        "attacks run only in a user namespace of their own, or in a container"
    );
    perform(args);
}

/// Whether somebody took everything from this process that can be taken: an engine's containers may have no user
/// namespace.
fn is_held() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let held = ["CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"];
    held.iter().all(|line| status.lines().any(|it| it == *line))
}

/// The same for surroundings that have made sure of that themselves.
pub(crate) fn perform(args: &[String]) {
    let mut report = Report::default();
    let (name, args) = args.split_first().expect("the name of an attack");
    // The token is there to be seen in the process table, the attack itself has no use for it.
    let args: Vec<&str> =
        args.iter().map(String::as_str).filter(|arg| !arg.starts_with("token=")).collect();
    by_name(name)(&args, &mut report);
    report.print();
}

type Attack = fn(&[&str], &mut Report);

fn by_name(name: &str) -> Attack {
    let all = [
        files::ATTACKS,
        kernel::ATTACKS,
        leaks::ATTACKS,
        mounts::ATTACKS,
        network::ATTACKS,
        outward::ATTACKS,
        process::ATTACKS,
        resources::ATTACKS,
        terminal::ATTACKS,
        work::ATTACKS,
    ];
    let found = all.iter().flat_map(|some| some.iter()).find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("there is no attack `{name}`")).1
}

impl Report {
    /// Notes what a try came to.
    pub(crate) fn tried<T>(&mut self, what: &str, result: io::Result<T>) -> Option<T> {
        let (answer, value) = match result {
            Ok(value) => ("ok".to_owned(), Some(value)),
            Err(error) => (sys::name(&error), None),
        };
        self.said(what, answer);
        value
    }

    /// Notes an answer that is not an error.
    pub(crate) fn said(&mut self, what: &str, answer: impl Into<String>) {
        self.tries.push((what.to_owned(), answer.into()));
    }

    /// Notes what could be read.
    pub(crate) fn read(&mut self, what: &str, result: io::Result<Vec<u8>>) {
        if let Some(bytes) = self.tried(what, result) {
            self.found.push(String::from_utf8_lossy(&bytes).into_owned());
        }
    }

    fn print(&self) {
        println!("{}", serde_json::to_string(self).expect("a report is plain"));
    }
}

/// Arguments of the form `label=value`.
fn pairs<'a>(args: &[&'a str]) -> Vec<(&'a str, &'a str)> {
    args.iter().map(|arg| arg.split_once('=').expect("label=value")).collect()
}
