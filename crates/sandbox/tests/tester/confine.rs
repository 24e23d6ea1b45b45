//! Becomes a program that is confined as the kernel is.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use fluffy_sandbox::l1::{L1Options, close_inherited, enter};

use crate::confined::{Confine, Confined};

/// Confines this process as a file says, and becomes the program that it names, or drives a sandbox itself.
/// Standard input is the program's.
pub(crate) fn run(file: &str) -> ExitCode {
    close_inherited(&[]).expect("nothing is inherited");
    let text = std::fs::read(file).expect("a file that says what to do");
    let confine: Confine = serde_json::from_slice(&text).expect("in JSON");
    let options = L1Options {
        project: confine.project,
        writable: confine.writable,
        volumes: confine.volumes,
        home: confine.home,
        shown: confine.shown,
        program: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe")),
        keep: Vec::new(),
    };
    let leaked: Vec<_> = confine.leaked.iter().map(|path| File::open(path).unwrap()).collect();
    let started = std::time::Instant::now();
    let entered = enter(&options);
    let told = match &entered {
        Ok(entered) => Confined {
            took_us: started.elapsed().as_micros().try_into().unwrap_or(u64::MAX),
            uid: entered.uid,
            notes: entered.notes.clone(),
            passed_over: entered.passed_over.iter().map(|(path, _)| path.clone()).collect(),
            error: None,
        },
        Err(error) => Confined { error: Some(crate::drive::chain(error)), ..Confined::default() },
    };
    println!("{}", serde_json::to_string(&told).unwrap());
    drop(leaked);
    match (entered, confine.run.split_first()) {
        (Err(_), _) => ExitCode::FAILURE,
        (Ok(_), None) => ExitCode::SUCCESS,
        // As the kernel does: it goes on as it is.
        (Ok(_), Some((program, [name]))) if program == "self" && name == "drive" => {
            crate::drive::run(crate::asked());
            ExitCode::SUCCESS
        }
        (Ok(_), Some((program, args))) => {
            let error = Command::new(program).args(args).exec();
            panic!("{program} cannot be run: {error}");
        }
    }
}
