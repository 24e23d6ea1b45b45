//! Lines that are sent: messages, and commands that begin with a slash.

use fluffy_base::{Excerpt, ProjectPath};
use fluffy_workflow::Mode;

use super::{App, Effect, Lookup};
use crate::shell::command::{COMMANDS, KEYS, Misread, Verb, is_command, parse};
use crate::wire::{Act, ChatWork, Say};

/// How many files are pinned at the most.
const MAX_PINS: usize = 32;

impl App {
    /// A line was sent.
    pub(super) fn line(&mut self, text: String) {
        self.history.push(&text);
        if !is_command(&text) {
            match self.is_busy() {
                true => self.waiting.push_back(text),
                false => self.send(text),
            }
            return;
        }
        self.stage.typed(text.trim());
        match parse(&text) {
            Ok(typed) => {
                let (verb, argument) = (typed.verb, typed.argument.to_owned());
                self.command(verb, &argument, text.trim());
            }
            Err(Misread { why, fix }) => self.stage.tell_error("this is no command", &why, &fix),
        }
    }

    /// A message becomes work.
    pub(super) fn send(&mut self, text: String) {
        self.stage.typed(&text);
        self.turn(text);
    }

    /// Hands what was typed to the conversation.
    fn turn(&mut self, text: String) {
        let answers = self.answers();
        self.begins("waiting for the model", None);
        self.effects.push(Effect::Turn(ChatWork::Say(Box::new(Say {
            text,
            answers,
            confirmed: false,
            verbose: self.verbose,
            mode: self.mode,
            access: self.access,
            pins: self.pins.clone(),
            no_model: None,
        }))));
    }

    fn command(&mut self, verb: Verb, argument: &str, typed: &str) {
        match verb {
            Verb::Strict => self.set_mode(Mode::Strict),
            Verb::Explore => self.set_mode(Mode::Explore),
            Verb::Debug => self.set_mode(Mode::Debug),
            Verb::Status => self.effects.push(Effect::Look(Lookup::Status(self.session.clone()))),
            Verb::Skills => self.effects.push(Effect::Look(Lookup::Skills)),
            Verb::Plugins => self.effects.push(Effect::Look(Lookup::Plugins)),
            Verb::Sessions => self.effects.push(Effect::Look(Lookup::Sessions)),
            Verb::Budget => self.act("measuring the coverage", Act::Budget),
            Verb::Undo => self.act("taking the last step back", Act::Undo),
            Verb::Diff => self.act("comparing", Act::Diff),
            Verb::Grants => self.grants(argument),
            Verb::Conversation => self.ask_conversation(typed),
            Verb::Approve => self.answer_by_command(true, ""),
            Verb::Reject => self.answer_by_command(false, argument),
            Verb::Pin => self.pin(argument),
            Verb::Cancel => self.cancel(),
            Verb::Verbose => {
                self.verbose = !self.verbose;
                self.stage.tell(if self.verbose { "more is shown" } else { "less is shown" });
            }
            Verb::Cost => {
                let [session, all] = self.status.costs();
                self.stage.tell_text(&format!("this session: {session}"));
                self.stage.tell_text(&format!("since fluffy began: {all}"));
            }
            Verb::New => self.begin_anew(),
            Verb::Clear => self.effects.push(Effect::Clear),
            Verb::Help => self.help(),
            Verb::Quit => self.effects.push(Effect::Leave),
        }
    }

    /// The mode of what follows; of the session, too, which its rules have a word in.
    fn set_mode(&mut self, mode: Mode) {
        if self.session.is_some() {
            return self.act("setting the mode", Act::Mode(mode));
        }
        self.stage.tell_text(&format!("your messages will be worked on in {mode} mode"));
        self.mode_is(mode);
    }

    /// It is so from now on.
    pub(super) fn mode_is(&mut self, mode: Mode) {
        self.mode = mode;
        self.status.set_mode(mode);
    }

    fn act(&mut self, what: &str, act: Act) {
        if self.is_busy() && act.fits_while_under_way() {
            return self.effects.push(Effect::Steer(act));
        }
        if self.is_busy() {
            let fix = "wait for its end, or end it with Ctrl-C";
            return self.stage.tell_error("not now", "something is under way", fix);
        }
        if self.session.is_none() {
            let fix = "send a message first; for earlier sessions there is: fluffy session";
            return self.stage.tell_error("there is no session yet", "nothing was asked for", fix);
        }
        self.begins(what, Some(act.clone()));
        self.effects.push(Effect::Act { session: self.session.clone(), act });
    }

    /// Lists what was agreed to for the whole session, or takes one back.
    fn grants(&mut self, number: &str) {
        let number = number.trim_start_matches('#');
        match (number.is_empty(), number.parse()) {
            (true, _) => self.effects.push(Effect::Look(Lookup::Grants(self.session.clone()))),
            (false, Ok(number)) => self.act("taking it back", Act::Revoke(number)),
            (false, Err(_)) => {
                let fix = "/grants lists them with their numbers";
                self.stage.tell_error("nothing is taken back", "that is no number", fix);
            }
        }
    }

    /// What the conversation itself answers, in the kernel's process.
    fn ask_conversation(&mut self, typed: &str) {
        if self.is_busy() {
            let fix = "wait for its end, or end it with Ctrl-C";
            return self.stage.tell_error("not now", "something is under way", fix);
        }
        self.turn(typed.to_owned());
    }

    /// Keeps a file before the model's eyes. Whether it may be read is the kernel's business.
    fn pin(&mut self, path: &str) {
        let path = path.strip_prefix('@').unwrap_or(path);
        if path.is_empty() {
            let pins = match self.pins.is_empty() {
                true => "nothing is pinned".to_owned(),
                false => format!("pinned: {}", self.pins.join(", ")),
            };
            return self.stage.tell_text(&crate::inert::inert(&pins));
        }
        match ProjectPath::parse(path) {
            Ok(_) if self.pins.len() >= MAX_PINS => {
                self.stage.tell_error("it is not pinned", "32 files are", "begin anew with /new");
            }
            Ok(path) => {
                let path = path.to_string();
                if !self.pins.contains(&path) {
                    self.pins.push(path.clone());
                }
                if self.session.is_some() {
                    return self.act("pinning it", Act::Pin(path));
                }
                let text = format!(
                    "{} is before the model's eyes from the next message on",
                    Excerpt::new(&path, 200)
                );
                self.stage.tell_text(&text);
            }
            Err(error) => {
                let fix = "name a file by its path from the project's root";
                self.stage.tell_error(
                    "it is not pinned",
                    &Excerpt::new(&error.to_string(), 300).to_string(),
                    fix,
                );
            }
        }
    }

    /// Ends what is under way, and what waits.
    pub(super) fn cancel(&mut self) {
        let waited = self.waiting.len();
        self.waiting.clear();
        if waited > 0 {
            self.stage.tell(&format!("{waited} waiting given up"));
        }
        // Whoever asked is answered: nobody agreed.
        self.open = None;
        match &mut self.under {
            Some(under) => {
                under.is_cancelled = true;
                self.effects.push(Effect::Cancel);
            }
            None if waited == 0 => self.stage.tell("nothing is under way"),
            None => {}
        }
    }

    fn begin_anew(&mut self) {
        if self.is_busy() {
            let fix = "wait for its end, or end it with Ctrl-C";
            return self.stage.tell_error("not now", "something is under way", fix);
        }
        self.session = None;
        self.pins.clear();
        self.status.forget();
        self.turn("/forget".to_owned());
    }

    fn help(&mut self) {
        let rows = COMMANDS.iter().map(|slash| (slash.usage(), slash.help));
        let keys = KEYS.iter().map(|(key, help)| ((*key).to_owned(), *help));
        for (name, help) in rows {
            self.stage.tell_pair(&name, help);
        }
        self.stage.tell("");
        for (name, help) in keys {
            self.stage.tell_pair(&name, help);
        }
    }
}
