//! A real terminal: tmux, with a server of its own, of a fixed size.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::task::lab::{Lab, Language, with_pytest};

/// How long something may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(20);

/// `fluffy` at a terminal.
pub(crate) struct Terminal {
    socket: PathBuf,
}

impl Terminal {
    /// Begins a conversation with what a model says.
    pub(crate) fn new(lab: &Lab, turns: &[Value], (width, height): (u32, u32)) -> Self {
        Self::with(lab, turns, (width, height), &["TERM=tmux-256color", "NO_COLOR=1"])
    }

    /// The same with these variables.
    pub(crate) fn with(
        lab: &Lab,
        turns: &[Value],
        (width, height): (u32, u32),
        variables: &[&str],
    ) -> Self {
        let this = Self { socket: lab.user.project.path("tmux.sock") };
        let provider = format!("replay:{}", lab.transcript(turns).display());
        let path = match lab.language {
            Language::Python => with_pytest(),
            Language::Rust | Language::JavaScript => std::env::var("PATH").unwrap(),
        };
        let state = lab.user.project.state();
        // The shell under it stays, so that it is seen in which state the terminal is left.
        let script = format!(
            "cd '{}' && env -i PATH='{path}' HOME='{}' LC_ALL=C.UTF-8 XDG_STATE_HOME='{}' \
             FLUFFY_KERNEL_IDLE_SECONDS=0 {} '{}' --provider '{provider}'; echo \"left: $?\"; exec cat",
            lab.root().display(),
            std::env::var("HOME").unwrap(),
            state.display(),
            variables.join(" "),
            env!("CARGO_BIN_EXE_fluffy"),
        );
        let size = [width.to_string(), height.to_string()];
        this.tmux(&["new-session", "-d", "-x", &size[0], "-y", &size[1], "sh", "-c", &script]);
        this.tmux(&["set", "-g", "status", "off"]);
        this.tmux(&["resize-window", "-x", &size[0], "-y", &size[1]]);
        this
    }

    pub(crate) fn tmux(&self, args: &[&str]) -> String {
        let output = Command::new("tmux")
            .args(["-u", "-f", "/dev/null", "-S"])
            .arg(&self.socket)
            .args(args)
            .env("LC_ALL", "C.UTF-8")
            .env_remove("TMUX")
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "tmux {args:?}: {told}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Kills the program politely.
    pub(crate) fn tells_to_end(&self) {
        let shell = self.tmux(&["display", "-p", "#{pane_pid}"]);
        let children = format!("/proc/{0}/task/{0}/children", shell.trim());
        let program = std::fs::read_to_string(children).unwrap();
        let program = Pid::from_raw(program.trim().parse().unwrap()).unwrap();
        kill_process(program, Signal::TERM).unwrap();
    }

    /// Presses keys by tmux's names.
    pub(crate) fn press(&self, keys: &[&str]) {
        let mut args = vec!["send-keys"];
        args.extend(keys);
        self.tmux(&args);
    }

    /// Types a text.
    pub(crate) fn typed(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// Types a line and sends it.
    pub(crate) fn sent(&self, text: &str) {
        self.typed(text);
        self.press(&["Enter"]);
    }

    /// Pastes, as a terminal does: in brackets.
    pub(crate) fn paste(&self, text: &str) {
        self.tmux(&["set-buffer", text]);
        self.tmux(&["paste-buffer", "-p", "-r"]);
    }

    /// What is on the screen.
    pub(crate) fn screen(&self) -> String {
        let rows = self.tmux(&["capture-pane", "-p"]);
        rows.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }

    /// All that was ever there.
    pub(crate) fn everything(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-S", "-"])
    }

    /// The column and the row of the cursor.
    pub(crate) fn cursor(&self) -> String {
        self.tmux(&["display", "-p", "#{cursor_x},#{cursor_y}"]).trim().to_owned()
    }

    /// Waits until the screen is like that.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let since = Instant::now();
        loop {
            let screen = self.screen();
            if holds(&screen) {
                return screen;
            }
            assert!(since.elapsed() < PATIENCE, "never seen: {what}\n{screen}");
            std::thread::sleep(PAUSE);
        }
    }

    /// Waits until a text is on the screen.
    #[track_caller]
    pub(crate) fn sees(&self, text: &str) -> String {
        self.until(text, |screen| screen.contains(text))
    }

    /// Says yes to the question with this in it.
    #[track_caller]
    pub(crate) fn agree(&self, about: &str) {
        let asked = |screen: &str| screen.contains(about) && screen.contains("? agree?");
        self.until(about, asked);
        // What is pressed before the question could be read is typed.
        let agreed = self.everything().matches("✓ agreed").count();
        self.until("the yes", |_| {
            self.press(&["C-u", "y"]);
            std::thread::sleep(PAUSE);
            self.everything().matches("✓ agreed").count() > agreed
        });
    }

    /// Waits until the conversation has begun.
    #[track_caller]
    pub(crate) fn ready(&self) {
        self.sees("/help");
        self.until("the input", |screen| screen.lines().any(|row| row == ">"));
    }

    /// The screen with what is never twice the same left out.
    pub(crate) fn masked(&self) -> String {
        masked(&self.screen())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let mut kill = Command::new("tmux");
        let _gone = kill.arg("-S").arg(&self.socket).arg("kill-server").output();
    }
}

/// Times, spinners and names that differ from run to run.
fn masked(screen: &str) -> String {
    let mut rows = Vec::new();
    for row in screen.lines() {
        let mut words: Vec<String> = Vec::new();
        for word in row.split(' ') {
            let number = word.chars().all(|c| c.is_ascii_digit() || c == '.') && !word.is_empty();
            let before = words.last().cloned().unwrap_or_default();
            match word {
                "ms" | "s" if before == "#" => {
                    words.pop();
                    words.push("[time]".to_owned());
                }
                _ if before == "session" || before == "commit" => words.push("[id]".to_owned()),
                _ if number => words.push("#".to_owned()),
                _ if ('⠀'..='⣿').any(|c| word.starts_with(c)) => words.push("*".to_owned()),
                word => words.push(word.to_owned()),
            }
        }
        rows.push(words.join(" "));
    }
    rows.join("\n")
}
