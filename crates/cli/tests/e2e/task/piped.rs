//! A task that is piped in, and a person who sits at the terminal all the same.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use super::lab::{Lab, Language, complete, say, write};
use crate::program::Answer;

/// What the program's streams are, beside an input that is always a pipe.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seat {
    /// The standard error is the terminal that the program was started from.
    Shown,
    /// It is a file: nobody would see the question.
    Hidden,
    /// It is a terminal, but none that the program belongs to.
    Foreign,
}

/// Runs a task in debug mode, which only a person may agree to, with its words from a pipe.
fn piped(lab: &Lab, typed: &str, seat: Seat) -> (Answer, String) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&person).unwrap();
    unlockpt(&person).unwrap();
    let name = ptsname(&person, Vec::new()).unwrap();
    let open = || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut person = File::from(person);
    person.write_all(typed.as_bytes()).unwrap();

    let turns = [say("Code.", &[write("sums.py", &lab.language.solution())]), complete()];
    let run = lab.command(&["--mode", "debug"], &turns);
    let mut words: Vec<_> = run.get_args().map(ToOwned::to_owned).collect();
    *words.last_mut().unwrap() = "-".into();
    let mut command = Command::new("setsid");
    command.arg("--wait");
    if seat != Seat::Foreign {
        command.arg("--ctty");
    }
    command.args(["sh", "-c", r#"echo "add a function that doubles" | "$@""#, "sh"]);
    command.arg(run.get_program()).args(words).current_dir(lab.root()).env_clear();
    command.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(open()).stdout(Stdio::piped());
    match seat {
        Seat::Shown | Seat::Foreign => command.stderr(open()),
        Seat::Hidden => command.stderr(Stdio::piped()),
    };
    // What is shown has to be read while it runs, or the program would wait for the screen.
    let held = open();
    let mut screen = person.try_clone().unwrap();
    let reader = std::thread::spawn(move || {
        let (mut shown, mut block) = (Vec::new(), [0; 4096]);
        // The terminal's end is an error here, and the end of what was shown.
        while let Ok(read @ 1..) = screen.read(&mut block) {
            shown.extend_from_slice(&block[..read]);
        }
        String::from_utf8_lossy(&shown).into_owned()
    });
    let child = command.spawn().unwrap();
    drop((command, held));
    let answer = Answer::of(child.wait_with_output().unwrap());
    (answer, reader.join().unwrap())
}

#[test]
fn a_question_is_asked_at_the_terminal_when_the_task_is_piped_in() {
    let lab = Lab::new(Language::Python);
    let (answer, shown) = piped(&lab, "y\ny\n", Seat::Shown);
    assert_eq!(answer.code, 0, "{}\n{shown}", answer.out);
    assert!(shown.contains("Agree? [y/N"), "{shown}");
    assert!(answer.out.contains("the user, at the terminal"), "{}", answer.out);
    assert_eq!(lab.user.read("sums.py"), lab.language.solution());
}

#[test]
fn a_no_at_that_terminal_is_a_no() {
    let lab = Lab::new(Language::Python);
    let before = lab.snapshot();
    let (answer, shown) = piped(&lab, "n\n", Seat::Shown);
    assert_eq!(answer.code, 3, "{}\n{shown}", answer.out);
    assert_eq!(lab.snapshot(), before);
}

#[test]
fn nobody_is_asked_who_would_not_see_the_question_or_whose_terminal_it_is_not() {
    let lab = Lab::new(Language::Python);
    let before = lab.snapshot();
    for seat in [Seat::Hidden, Seat::Foreign] {
        let (answer, shown) = piped(&lab, "y\ny\n", seat);
        assert_eq!(answer.code, 3, "{}\n{}{shown}", answer.out, answer.err);
        assert!(answer.out.contains("nobody can be asked"), "{}", answer.out);
        assert_eq!(lab.snapshot(), before);
    }
}
