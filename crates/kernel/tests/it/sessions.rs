//! Boot, end and boot again on one ledger.

use fluffy_base::{Decision, KernelState, VirtualClock};
use fluffy_kernel::{Kernel, SessionStart};
use fluffy_ledger::{Detail, EventType, Ledger, LedgerConfig, Origin, Record, RetentionOptions};
use fluffy_testkit::Project;

use crate::lab::{ALLOWED, HALTED, Lab, detail, echo, ends, error};

#[test]
fn lesson_l08_a_boot_after_a_halt_stays_halted_and_goes_on_with_the_ledger() {
    let lab = Lab::new();
    let kernel = lab.boot(vec![]);
    let session = kernel.session_id().clone();
    kernel.submit(echo("r1"));
    kernel.halt("a fire").unwrap();
    kernel.close().unwrap();
    for boot in 0..3 {
        let before = lab.entries().len();
        let kernel = lab.boot(vec![]);
        assert_eq!(kernel.state(), KernelState::Halted, "boot {boot}");
        assert_eq!(kernel.session_id(), &session);
        assert_eq!(kernel.ledger_report().entries, before as u64);
        let start = lab.last();
        assert_eq!(detail(&start).event, "kernel_start");
        assert_eq!(start.entry.decision, Decision::Halt);
        let receipt = kernel.submit(echo("r2"));
        assert_eq!(ends(&receipt), HALTED);
        assert_eq!(error(&receipt), "Kernel is halted: a fire");
        assert!(kernel.halt("again").is_err());
        // Every other time without an orderly end of the kernel's own making.
        if boot % 2 == 0 { kernel.close().unwrap() } else { drop(kernel) }
    }
    lab.verify();
}

#[test]
fn lesson_l08_only_a_new_session_ends_a_halt_and_the_ledger_goes_on() {
    let lab = Lab::new();
    let kernel = lab.boot(vec![]);
    let session = kernel.session_id().clone();
    kernel.halt("a fire").unwrap();
    kernel.close().unwrap();
    let before = lab.entries().len();
    let mut config = lab.config(vec![]);
    config.session = SessionStart::New;
    config.ids = std::sync::Arc::new(fluffy_base::SeededIds::new(8));
    let kernel = Kernel::boot(config).unwrap();
    assert_eq!(kernel.state(), KernelState::Idle);
    assert_ne!(kernel.session_id(), &session);
    assert_eq!(ends(&kernel.submit(echo("r1"))), ALLOWED);
    kernel.close().unwrap();
    assert!(lab.entries().len() > before);
    // The halt lies before the new session, so the next boot is not halted.
    assert_eq!(lab.boot(vec![]).state(), KernelState::Idle);
    lab.verify();
}

#[test]
fn lesson_l08_what_others_enter_does_not_lift_a_halt() {
    let lab = Lab::new();
    let kernel = lab.boot(vec![]);
    kernel.halt("a fire").unwrap();
    let session = kernel.session_id().clone();
    kernel.close().unwrap();
    let origin = Origin {
        kernel_id: fluffy_base::KernelId::named("kernel-test").unwrap(),
        session_id: session,
        variant: "strict",
        mode: None,
        policy_digest: None,
        engine: "test",
    };
    let clock = std::sync::Arc::new(fluffy_base::VirtualClock::new(5_000, 1));
    let (layout, key) = (lab.layout(), crate::lab::key());
    let ledger = Ledger::open(LedgerConfig {
        layout,
        key,
        origin: origin.clone(),
        clock,
        retention: fluffy_ledger::RetentionOptions::default(),
    })
    .unwrap();
    let detail = Detail::new(origin, EventType::HumanDecision);
    let idle = (KernelState::Idle, KernelState::Idle);
    ledger.append(Record::event(5_000, "a person said yes", idle, detail)).unwrap();
    drop(ledger);
    assert_eq!(lab.boot(vec![]).state(), KernelState::Halted);
}

#[test]
fn lesson_l08_damage_to_the_ledger_does_not_lift_a_halt_that_can_still_be_read() {
    let lab = Lab::new();
    let kernel = lab.boot(vec![]);
    kernel.halt("a fire").unwrap();
    kernel.close().unwrap();
    // A forged memory of the ledger: it is set aside, and a new segment begins.
    let remembered = lab.layout().remembered().to_owned();
    std::fs::OpenOptions::new().write(true).truncate(true).open(remembered).unwrap();
    let kernel = lab.boot(vec![]);
    assert!(kernel.ledger_report().broken.is_some());
    assert_eq!(kernel.ledger_report().segment, 2);
    assert_eq!(kernel.state(), KernelState::Halted);
    assert_eq!(error(&kernel.submit(echo("r"))), "Kernel is halted: a fire");
}

#[test]
fn every_boot_is_a_session_with_a_start_and_an_end() {
    let lab = Lab::new();
    for seed in [1, 2] {
        let mut config = lab.config(vec![]);
        config.ids = std::sync::Arc::new(fluffy_base::SeededIds::new(seed));
        let kernel = Kernel::boot(config).unwrap();
        assert_eq!(kernel.state(), KernelState::Idle);
        kernel.submit(echo("r"));
        kernel.close().unwrap();
    }
    let entries = lab.entries();
    let events: Vec<_> = entries.iter().map(|record| detail(record).event).collect();
    let session = ["kernel_start", "syscall", "kernel_shutdown"];
    assert_eq!(events[1..4], session);
    assert_eq!(events[4..], session);
    assert_eq!(entries[1].entry.state_from, KernelState::Booting);
    assert_ne!(detail(&entries[1]).session_id, detail(&entries[4]).session_id);
    lab.verify();
}

#[test]
fn two_kernels_cannot_write_one_ledger() {
    let lab = Lab::new();
    let _first = lab.boot(vec![]);
    assert!(Kernel::boot(lab.config(vec![])).is_err());
}

#[test]
fn a_kernel_boots_where_the_machine_allows_and_says_why_it_cannot() {
    let project = Project::new().unwrap();
    let lab = Lab::new();
    let mut config = lab.config(vec![]);
    // A file stands where the directory should be.
    let taken = project.path("taken");
    std::fs::OpenOptions::new().write(true).create_new(true).open(&taken).unwrap();
    config.layout = fluffy_ledger::Layout::new(&taken, project.path("checkpoint"));
    let Err(error) = Kernel::boot(config) else { panic!("there is no place for a ledger") };
    assert_eq!(error.to_string(), "the kernel cannot use its ledger");
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("taken"));
}

/// A kernel at noon of this day, whose ledger keeps as little as it may.
fn boot_on(lab: &Lab, day: u64) -> Kernel {
    let mut config = lab.config(vec![]);
    config.clock = std::sync::Arc::new(VirtualClock::new(day * 86_400_000 + 43_200_000, 1));
    config.retention = RetentionOptions { retention_days: 2, keep_days: 0, ..config.retention };
    Kernel::boot(config).unwrap()
}

fn halted_on_day_100() -> Lab {
    let lab = Lab::new();
    let kernel = boot_on(&lab, 100);
    for n in 0..40 {
        kernel.submit(echo(&format!("r{n}")));
    }
    kernel.halt("a fire").unwrap();
    kernel.close().unwrap();
    lab
}

#[test]
fn aud_6_a_halt_outlasts_its_own_entry() {
    let lab = halted_on_day_100();
    let halted = lab.entries().iter().position(|e| detail(e).event == "kernel_halt").unwrap();
    let mut reasons = std::collections::BTreeSet::new();
    for day in 101..112 {
        let kernel = boot_on(&lab, day);
        assert_eq!(kernel.ledger_report().retained.problem, None, "day {day}");
        assert_eq!(kernel.state(), KernelState::Halted, "day {day}");
        reasons.insert(error(&kernel.submit(echo("r"))).to_owned());
        for _ in 0..40 {
            kernel.submit(echo("r"));
        }
        kernel.close().unwrap();
        lab.verify();
    }
    assert!(lab.entries().iter().all(|entry| entry.entry.seq != halted as u64), "it is gone");
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    // An altered archive is no way out either.
    let lab = halted_on_day_100();
    boot_on(&lab, 101).close().unwrap();
    let archive = std::fs::read_dir(lab.layout().archive()).unwrap().next().unwrap().unwrap();
    let text = std::fs::read_to_string(archive.path()).unwrap();
    write(&archive.path(), &text.replace("a fire", "a fine"));
    assert_eq!(boot_on(&lab, 102).state(), KernelState::Halted);
}

#[expect(clippy::disallowed_methods, reason = "a test changes an archive")]
fn write(path: &std::path::Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

#[test]
fn aud_6_past_decisions_and_their_inputs_are_read_from_archives() {
    let lab = Lab::new();
    let kernel = boot_on(&lab, 100);
    let receipts: Vec<_> = (0..80).map(|n| kernel.submit(echo(&format!("r{n}")))).collect();
    kernel.close().unwrap();
    let inputs = |receipt: &fluffy_base::KernelReceipt| {
        fluffy_ledger::input_of(&lab.database(), receipt.entry.unwrap()).unwrap()
    };
    let (before, kept) = (lab.entries(), receipts.iter().map(inputs).collect::<Vec<_>>());
    assert!(kept.iter().all(Option::is_some));
    let trimmed: u64 = (101..103)
        .map(|day| {
            let kernel = boot_on(&lab, day);
            (0..40).for_each(|_| drop(kernel.submit(echo("r"))));
            let trimmed = kernel.ledger_report().retained.trimmed;
            kernel.close().unwrap();
            trimmed
        })
        .sum();
    assert!(trimmed >= 80, "{trimmed}");
    assert_eq!(lab.entries()[..before.len()], before);
    assert_eq!(receipts.iter().map(inputs).collect::<Vec<_>>(), kept);
    lab.verify();
}
