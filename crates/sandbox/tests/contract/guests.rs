//! Guests of the driver's own program, which are not executed: they are confined like any program.

use std::path::Path;
use std::sync::Arc;

use fluffy_sandbox::{Config, End, Job, Runtime, RuntimeError, Template};

use super::native::{holds, program};

fn config() -> Config {
    Config::of(Template::CodeExecutor)
}

/// What a job that succeeds prints.
fn printed(runtime: &dyn Runtime, config: Config, job: Job) -> String {
    let outcome = runtime.run(config, job, Arc::new(())).unwrap();
    assert!(outcome.is_success(), "{outcome:?}");
    String::from_utf8(outcome.stdout.bytes).unwrap()
}

fn is_no_program(runtime: &dyn Runtime, job: Job) -> bool {
    let ran = runtime.run(config(), job, Arc::new(()));
    matches!(ran, Err(RuntimeError::Program { .. }))
}

#[test]
fn a_guest_that_is_not_executed_has_given_up_what_an_executed_program_has() {
    holds(
        "guests::a_guest_that_is_not_executed_has_given_up_what_an_executed_program_has",
        |runtime| {
            let program = program();
            let shown = config().showing(Path::new(&program)).unwrap();
            let executed = printed(runtime, shown, Job::new(&program).args(["report"]));
            // It cannot even see the program.
            let split = printed(runtime, config(), Job::guest(&program, "report"));
            assert_eq!(split, executed);
            assert!(split.contains("Seccomp:\t2\n") && split.contains("NoNewPrivs:\t1\n"));
            assert!(split.contains("CapBnd:\t0000000000000000\n"));
            assert!(split.ends_with("[\"0\", \"1\", \"2\", \"3\"]\nwrote: false\n"), "{split}");
        },
    );
}

#[test]
fn a_command_that_only_looks_like_a_guest_is_executed() {
    holds("guests::a_command_that_only_looks_like_a_guest_is_executed", |runtime| {
        let program = program();
        assert!(is_no_program(runtime, Job::new(&program).args(["report"])));
        assert!(is_no_program(runtime, Job::guest(&program, "unknown")));
        assert!(is_no_program(runtime, Job::guest(&program, "report").args(["more"])));
    });
}

#[test]
fn a_guest_that_panics_is_a_job_that_failed() {
    holds("guests::a_guest_that_panics_is_a_job_that_failed", |runtime| {
        let outcome = runtime.run(config(), Job::guest(program(), "panic"), Arc::new(())).unwrap();
        assert_eq!(outcome.end, End::Exited(101), "{outcome:?}");
        assert!(String::from_utf8_lossy(&outcome.stderr.bytes).contains("on purpose"));
    });
}
