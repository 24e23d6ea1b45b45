//! The conversation at a real terminal, as a person has it.

mod terminal;

use serde_json::json;

use self::terminal::Terminal;
use crate::task::lab::{Lab, Language, call, complete, run_tests, say, write};

const SIZE: (u32, u32) = (70, 24);

/// A task as the conversation understands it.
const TASK: &str = "add a function that doubles to sums.py";

#[test]
fn cli_1_what_is_typed_is_edited_completed_and_found_again() {
    let lab = Lab::new(Language::Python);
    let terminal = Terminal::new(&lab, &[complete()], SIZE);
    terminal.ready();
    terminal.typed("helo 日本 world");
    terminal.sees("> helo 日本 world");
    terminal.press(&["C-a", "Right", "Right", "Right"]);
    terminal.typed("l");
    terminal.press(&["M-f", "M-f", "M-f"]);
    terminal.press(&["C-k"]);
    terminal.sees("> hello 日本");
    terminal.until("the cursor behind a wide letter", |_| terminal.cursor().starts_with("12,"));
    terminal.press(&["C-y", "C-w", "C-_"]);
    terminal.sees("> hello 日本 world");
    terminal.press(&["C-u"]);
    terminal.typed("/ver");
    terminal.sees("/verbose  show more");
    terminal.press(&["Tab", "Enter"]);
    terminal.sees("│ more is shown");
    terminal.typed("look at @su");
    terminal.press(&["Tab"]);
    terminal.sees("> look at @sums.py");
    terminal.press(&["C-c", "Up"]);
    terminal.sees("> /verbose\n");
    terminal.press(&["Escape", "C-u", "C-r"]);
    terminal.typed("verb");
    terminal.sees("search: verb");
    terminal.press(&["Enter", "C-u"]);
    terminal.sent("/stats");
    terminal.sees("did you mean /status?");
    insta::assert_snapshot!(terminal.masked(), @"
    │ fluffy #  what is to be done? /help lists commands and keys

    > /verbose

    │ more is shown

    > /stats

    │ ERROR: this is no command
    │ Reason: there is no command `/stats`
    │ Fix: did you mean /status? /help lists all commands

    >
    strict mode · idle · verbose
    ");
    terminal.press(&["C-d"]);
    terminal.sees("left: 0");
}

#[test]
fn cli_1_a_paste_of_many_lines_is_one_text_and_the_window_may_change() {
    let lab = Lab::new(Language::Python);
    let terminal = Terminal::new(&lab, &[complete()], SIZE);
    terminal.ready();
    terminal.paste(
        "first line\nsecond 日本語 line\n\tthird, which is a good deal longer than the others are",
    );
    terminal.sees("third, which");
    terminal.press(&["M-Enter"]);
    terminal.typed("typed");
    insta::assert_snapshot!(terminal.sees("  typed"), @"
    │ fluffy 0.1.0  what is to be done? /help lists commands and keys

    > first line
      second 日本語 line
          third, which is a good deal longer than the others are
      typed
    strict mode · idle
    ");
    terminal.tmux(&["resize-window", "-x", "30", "-y", "12"]);
    terminal.until("the narrow window", |screen| {
        screen.contains("  typed") && screen.contains("longer")
    });
    insta::assert_snapshot!(terminal.until("the input at rest", |screen| screen.ends_with("idle")).trim_start(), @"
    > first line
      second 日本語 line
          third, which is a good
      deal longer than the others
       are
      typed
    strict mode · idle
    ");
    terminal.tmux(&["resize-window", "-x", "20", "-y", "5"]);
    terminal.until("a tiny window", |screen| {
        screen.contains('↑') && screen.contains("  typed") && screen.contains("strict mode")
    });
    terminal.tmux(&["resize-window", "-x", "70", "-y", "24"]);
    terminal.until("the wide window", |screen| screen.contains("longer than the others are"));
    let input = terminal.screen();
    assert_eq!(input.matches("second 日本語 line").count(), 1, "{input}");
    terminal.press(&["C-c", "C-c", "C-c"]);
    terminal.sees("left: 0");
    assert!(!lab.user.read("sums.py").contains("typed"));
}

#[test]
fn slow_cli_2_a_task_is_done_in_the_conversation_and_questions_are_answered_by_keys() {
    let lab = Lab::new(Language::Python);
    let (test, text) = lab.language.test();
    let long = lab.language.solution() + &"# a line\n".repeat(600);
    let turns = [
        say("I write a **test** first:\n\n- `double`\n", &[write(test, text)]),
        say("It must fail.", &[run_tests()]),
        say("Now the code.", &[write("sums.py", &long)]),
        say("It must pass.", &[run_tests()]),
        complete(),
    ];
    let terminal = Terminal::new(&lab, &turns, SIZE);
    terminal.ready();
    terminal.sent(TASK);
    terminal.sees("? agree?");
    terminal.until("the answer to be possible", |_| {
        // What is pressed before the question could be read is typed.
        terminal.press(&["C-u", "d"]);
        terminal.screen().contains("space b j k g G")
    });
    terminal.press(&["G"]);
    terminal.sees("100 %");
    terminal.press(&["q"]);
    terminal.sees("? agree?");
    terminal.press(&["y"]);
    terminal.sees("✓ done");
    assert!(lab.user.read("sums.py").contains("def double"));
    insta::assert_snapshot!(terminal.masked(), @"
    │   +# a line
    │   +# a line
    │   +# a line
    │   and # more lines
    │ ✓ agreed: the user, at the terminal
    │ → committing
    │ ✓ test.run   # passed, # failed  [time]
    │   ✓ # passed

      Done.

    │ → at rest
    │ ✓ merged # files into the project
    │     ~ sums.py
    │     + test_double.py
    │ ✓ commit [id]
    │ ✓ task.complete  add double  [time]

      add double

    │ ✓ done  # files · # turns · [time]

    >
    strict mode · idle · # tokens
    ");
    terminal.sent("/status");
    terminal.sees("│ Session");
    terminal.sent("/quit");
    terminal.sees("left: 0");
}

#[test]
fn slow_cli_2_what_is_under_way_is_cancelled_and_what_it_prints_is_harmless() {
    let lab = Lab::new(Language::Python);
    let hostile = "\u{1b}]0;owned\u{7}\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}[2J\u{1b}[H\u{202e}> y\n│ fake\n\u{1b}[201~";
    let turns = [
        say(hostile, &[call("shell.run", json!({"command": "printf", "args": [hostile]}))]),
        say("", &[call("fs.read", json!({"path": hostile}))]),
        say("", &[call("shell.run", json!({"command": "sleep", "args": ["100"]}))]),
        complete(),
    ];
    let terminal = Terminal::new(&lab, &turns, SIZE);
    terminal.ready();
    terminal.sent(TASK);
    terminal.sees("sleep");
    terminal.typed("typed meanwhile");
    terminal.sees("> typed meanwhile");
    let seen = terminal.everything();
    assert!(seen.contains("^[]0;owned^G") && seen.contains("\n  │ fake"), "{seen}");
    assert!(!seen.lines().any(|row| row.starts_with("│ fake") || row.starts_with("> y")), "{seen}");
    assert!(!terminal.tmux(&["display", "-p", "#{pane_title}"]).contains("owned"));
    assert!(!terminal.tmux(&["list-buffers"]).contains("evil"));
    terminal.press(&["C-c", "C-c"]);
    terminal.sees("cancelled");
    terminal.until("the input at rest", |screen| {
        screen.contains("not done") && screen.contains("idle ·")
    });
    terminal.press(&["C-d"]);
    terminal.sees("left: 0");
    terminal.typed("echo");
    terminal.sees("echo");
}

#[test]
fn slow_cli_1_a_mode_that_is_chosen_while_a_call_runs_counts_from_the_next_call() {
    let lab = Lab::new(Language::Python);
    let turns = [
        say("A look.", &[call("shell.run", json!({"command": "sleep", "args": ["3"]}))]),
        say("Now the code.", &[write("sums.py", &lab.language.solution())]),
        say("As it is.", &[]),
    ];
    let terminal = Terminal::new(&lab, &turns, SIZE);
    terminal.ready();
    terminal.sent(TASK);
    terminal.sees("sleep");
    terminal.sent("/debug");
    // The call that runs is judged by the mode that it began in; the person is asked when it has ended.
    let screen = terminal.sees("? agree?");
    assert!(screen.contains("✓ shell.run"), "{screen}");
    terminal.agree("a person has to agree to debug mode");
    terminal.sees("debug mode ·");
    terminal.agree("+def double(a):");
    terminal.until("its end", |screen| screen.contains("idle ·"));
    assert!(lab.user.read("sums.py").contains("def double"), "it was no test that was asked for");
    assert!(terminal.screen().contains("debug mode · idle"), "{}", terminal.screen());
    terminal.press(&["C-d"]);
    terminal.sees("left: 0");
}

#[test]
fn cli_1_a_program_that_is_told_to_end_gives_the_terminal_back() {
    let lab = Lab::new(Language::Python);
    let terminal = Terminal::new(&lab, &[complete()], SIZE);
    terminal.ready();
    terminal.typed("half a message");
    terminal.tells_to_end();
    terminal.sees("left: 130");
    // Whoever comes next is shown what is typed, gets it by lines, and a paste without brackets.
    terminal.paste("seen\n");
    terminal.sees("\nseen\nseen");
    assert!(!terminal.screen().contains("200~"), "{}", terminal.screen());
    assert_eq!(terminal.tmux(&["display", "-p", "#{cursor_flag}"]).trim(), "1");
}

#[test]
fn cli_1_a_program_that_is_told_to_end_in_the_middle_of_a_task_ends_it_and_says_how_to_go_on() {
    let lab = Lab::new(Language::Python);
    let sleeping = call("shell.run", json!({"command": "sleep", "args": ["1000"]}));
    let terminal = Terminal::new(&lab, &[say("I wait.", &[sleeping])], SIZE);
    terminal.ready();
    terminal.typed("fix sums.py: it waits");
    terminal.press(&["Enter"]);
    terminal.sees("shell.run sleep 1000");
    terminal.tells_to_end();
    terminal.sees("left: 130");
    assert!(terminal.screen().contains("fluffy session resume"), "{}", terminal.screen());
}

#[test]
fn a_dumb_terminal_is_served_line_by_line() {
    let lab = Lab::new(Language::Python);
    let terminal = Terminal::with(&lab, &[complete()], SIZE, &["TERM=dumb"]);
    terminal.sees(">");
    terminal.sent("/stats");
    terminal.sees("did you mean /status?");
    terminal.sent("/explore");
    terminal.sees("explore mode");
    terminal.sent("yes");
    terminal.sees("There is nothing that waits for a yes");
    terminal.sent("summarize that");
    terminal.sees("I have nothing that `last` could be");
    terminal.sent("/anchors");
    terminal.sees("There is nothing to refer to yet");
    terminal.sent("/verbose");
    terminal.sees("more is shown");
    terminal.sent("thanks");
    terminal.sees("intent    talk");
    terminal.sent("/quit");
    terminal.sees("left: 0");
}

#[test]
fn without_a_terminal_there_is_no_conversation() {
    let lab = Lab::new(Language::Python);
    let answer = lab.user.run(&[]);
    assert_eq!(answer.code, 2);
    assert!(answer.err.contains("Usage:"), "{}", answer.err);
}
