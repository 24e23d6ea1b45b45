//! The kernel is killed in the middle of a step: the skill stands where it stood, or where the step takes it.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::lab::{Forge, NAME, SKILL, SKILL_FILE, TEST_FILE, TESTS};
use crate::program::working;

fn entries(forge: &Forge) -> usize {
    let log = forge.user.run(&["audit", "log", "--json", "--limit", "100000"]).out;
    log.lines().count()
}

/// Kills whatever works for the project once the ledger has so many entries, or the client is done.
fn killed_after(forge: &Forge, mut client: Child, more: usize) {
    let (before, begun) = (entries(forge), Instant::now());
    while client.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_secs(60) {
        if entries(forge) >= before + more {
            for pid in working(&forge.user) {
                let _gone = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
            }
            break;
        }
    }
    client.wait().unwrap();
}

fn start(forge: &Forge, args: &[&str]) -> Child {
    let mut command = forge.command(args);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn rec_1_a_kernel_killed_in_a_build_or_a_verification_leaves_the_skill_old_or_new() {
    for moment in 1..6 {
        let forge = Forge::new();
        forge.proposed();
        let builder = forge.transcript(&[
            &[(SKILL_FILE, SKILL), (TEST_FILE, TESTS)],
            &[(SKILL_FILE, SKILL), (TEST_FILE, TESTS)],
        ]);
        let client = start(&forge, &["skill", "build", NAME, "--builder", &builder]);
        killed_after(&forge, client, moment);
        let after = forge.standing();
        assert!(["PROPOSED", "BUILT"].contains(&after.as_str()), "{after}");
        if after == "PROPOSED" {
            forge.done(&["build", NAME, "--builder", &builder]);
        }
        let client = start(&forge, &["skill", "verify", NAME]);
        killed_after(&forge, client, moment * 2);
        let after = forge.standing();
        assert!(["BUILT", "VERIFIED"].contains(&after.as_str()), "{after}");
        if after == "BUILT" {
            assert!(!forge.root().join(SKILL_FILE).exists(), "nothing comes before its entry");
            forge.done(&["verify", NAME]);
        }
        let agreed = forge.agreeing(&["skill", "promote", NAME]);
        assert_eq!(agreed.code, 0, "{moment}: {}{}", agreed.out, agreed.err);
        assert_eq!(forge.run_it().code, 0);
        let verify = forge.user.run(&["audit", "verify"]);
        assert_eq!(verify.code, 0, "{}{}", verify.out, verify.err);
    }
}
