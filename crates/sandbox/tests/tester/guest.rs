//! Guests of this program: what the driver need not execute.

use fluffy_sandbox::Guest;

pub(crate) const GUESTS: [Guest; 2] =
    [Guest { name: "report", run: report }, Guest { name: "panic", run: panics }];

/// What of a process says how it is confined.
const TELLING: [&str; 11] = [
    "Uid:",
    "Gid:",
    "Groups:",
    "SigBlk:",
    "CapInh:",
    "CapPrm:",
    "CapEff:",
    "CapBnd:",
    "CapAmb:",
    "NoNewPrivs:",
    "Seccomp:",
];

/// Tells how this process is confined, and which descriptors it has: one more than there are, for looking.
pub(crate) fn report() -> u8 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    for line in status.lines().filter(|line| TELLING.iter().any(|it| line.starts_with(it))) {
        println!("{line}");
    }
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let mut open: Vec<_> = open.map(|entry| entry.unwrap().file_name()).collect();
    open.sort();
    println!("{open:?}");
    let written = std::fs::write("/etc/passwd", "mine").is_ok();
    println!("wrote: {written}");
    0
}

fn panics() -> u8 {
    panic!("on purpose")
}
