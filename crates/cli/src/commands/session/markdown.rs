//! A session as a text that people read.
//!
//! **Invariant.** What a model, a file or a program said stands in code blocks and code spans that it cannot end, with
//! control characters shown and not obeyed: nothing of it becomes a heading, a link, HTML or a terminal's command.

use std::fmt::Write as _;

use fluffy_agent::Said;
use fluffy_base::SessionId;
use fluffy_kernel::{CallAnswer, Dossier, Driver, ForkedFrom, StepDiff, TurnRecord};

use crate::inert::inert;
use crate::time;

/// More than this of one text is not shown.
const SHOWN: usize = 16 << 10;

/// A session as Markdown.
pub(super) fn markdown(
    id: &SessionId,
    dossier: &Dossier,
    said: &[Said],
    steps: &[StepDiff],
) -> String {
    let mut page = Page(String::new());
    page.beginning(id, dossier);
    for (at, (said, record)) in said.iter().zip(&dossier.session.turns).enumerate() {
        page.messages(at, dossier);
        page.turn(at + 1, said, record, dossier);
    }
    page.messages(said.len(), dossier);
    page.steps(steps);
    page.result(dossier);
    page.evidence(dossier);
    page.0
}

struct Page(String);

impl Page {
    fn line(&mut self, text: &str) {
        // Writing into a text does not fail.
        let _written = writeln!(self.0, "{text}");
    }

    fn heading(&mut self, level: usize, text: &str) {
        self.line(&format!("\n{} {text}\n", "#".repeat(level)));
    }

    /// A text of somebody's in a block that it cannot end.
    fn block(&mut self, kind: &str, text: &str) {
        let text = cut(text);
        let fence = "`".repeat(longest_run(&text).saturating_add(1).max(3));
        let end = if text.ends_with('\n') { "" } else { "\n" };
        self.line(&format!("{fence}{kind}\n{text}{end}{fence}"));
    }

    fn beginning(&mut self, id: &SessionId, dossier: &Dossier) {
        let session = &dossier.session;
        self.line(&format!("# Session {}\n", span(id.as_str())));
        let (standing, mode) = (session.standing(), session.mode());
        self.line(&format!("- Began: {} UTC", time::show(session.started_ms)));
        self.line(&format!("- Stands: {standing}, in {mode} mode, {} turns", session.turns.len()));
        if let Some(Driver { provider, model }) = &session.driver {
            self.line(&format!("- Model: {} of {}", span(model), span(provider)));
        }
        if let Some(ForkedFrom { session, entry, .. }) = &session.forked {
            self.line(&format!("- Forked from {} at entry {entry}", span(session)));
        }
        if let Some(archived) = session.archived {
            self.line(&format!("- Archived: {} UTC", time::show(archived.since_ms)));
        }
        self.heading(2, "Task");
        self.block("text", &session.task);
        for pin in session.pins() {
            self.line(&format!("\nPinned: {}\n", span(pin.path.as_str())));
        }
    }

    /// What the person said after so many turns.
    fn messages(&mut self, turns: usize, dossier: &Dossier) {
        let messages = dossier.session.messages.iter();
        for message in messages.filter(|message| message.after == turns as u64) {
            self.heading(2, "The person says");
            self.block("text", &message.text);
        }
    }

    fn turn(&mut self, number: usize, said: &Said, record: &TurnRecord, dossier: &Dossier) {
        self.heading(2, &format!("Turn {number}"));
        if !said.text.is_empty() {
            self.block("text", &said.text);
        }
        for call in &said.calls {
            let answer = record.answers.get(&call.id);
            let decided = answer.map_or("not answered", decision);
            self.heading(3, &format!("{}: {decided}", span(&call.name)));
            let request = format!("{number}.{}", call.id);
            let entries = dossier.entries.iter().filter(|entry| entry.request_id == request);
            for entry in entries {
                let rule = entry.rule.as_deref().map(|rule| format!(", rule {}", span(rule)));
                let why = entry.error.as_deref().map(|why| format!(": {}", span(why)));
                let (rule, why) = (rule.unwrap_or_default(), why.unwrap_or_default());
                let (seq, hash, decided) = (entry.seq, entry.hash, &entry.decision);
                self.line(&format!("- Entry {seq} `{hash}`: {decided}{rule}{why}"));
            }
            self.line("\nAsked:\n");
            self.block("json", &call.arguments);
            if let Some(answer) = answer {
                self.line("\nAnswered:\n");
                self.block("json", &pretty(&answer.content));
            }
        }
    }

    fn steps(&mut self, steps: &[StepDiff]) {
        if !steps.is_empty() {
            self.heading(2, "Changes");
        }
        for StepDiff { number, files, diff, .. } in steps {
            let files: Vec<String> = files.iter().map(|file| span(file)).collect();
            self.heading(3, &format!("Step {number}: {}", files.join(", ")));
            match diff {
                Some(diff) => self.block("diff", &diff.text()),
                None => self.line("The contents are archived, or not there any more."),
            }
        }
    }

    fn result(&mut self, dossier: &Dossier) {
        self.heading(2, "Result");
        let session = &dossier.session;
        match session.done() {
            None => self.line(&format!("Not done: the work stands in {}.", session.state())),
            Some("") => self.line("Done."),
            Some(summary) => self.block("text", summary),
        }
        self.line("");
        for path in session.merged() {
            self.line(&format!("- Merged: {}", span(&path)));
        }
        for commit in session.commits() {
            self.line(&format!("- Commit: {}", span(commit)));
        }
    }

    fn evidence(&mut self, dossier: &Dossier) {
        self.heading(2, "Evidence");
        let proved = dossier.proved;
        self.line(&format!(
            "- Ledger: {} entries, the first {} of them signed",
            proved.size, proved.signed
        ));
        self.line(&format!("- Signed root: `{}`", proved.root));
        for (name, entry) in [("First", dossier.entries.first()), ("Last", dossier.entries.last())]
        {
            if let Some(entry) = entry {
                self.line(&format!("- {name} entry: {} `{}`", entry.seq, entry.hash));
            }
        }
        self.line("- Every entry above was held against the ledger when this was written; `fluffy audit prove ENTRY` proves one.");
    }
}

fn decision(answer: &CallAnswer) -> &'static str {
    match (answer.allowed, answer.success) {
        (true, true) => "allowed",
        (true, false) => "allowed, and failed",
        (false, _) => "denied",
    }
}

fn pretty(content: &serde_json::Value) -> String {
    serde_json::to_string_pretty(content).unwrap_or_else(|_| content.to_string())
}

/// A text in one line, in a code span that it cannot end.
fn span(text: &str) -> String {
    let text = cut(text).replace(['\n', '\t'], " ");
    let text = text.trim();
    if text.is_empty() {
        return "(nothing)".to_owned();
    }
    let ticks = "`".repeat(longest_run(text).saturating_add(1));
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

/// A text made harmless, and not longer than is shown.
fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(SHOWN);
    let (shown, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    let mut shown = inert(shown).into_owned();
    if !rest.is_empty() {
        let _written = write!(shown, "\n[{} more bytes are not shown]", rest.len());
    }
    shown
}

/// The longest row of back ticks.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_the_span_or_the_block_that_it_stands_in() {
        assert_eq!(span("a"), "`a`");
        assert_eq!(span("a`b``c"), "```a`b``c```");
        assert_eq!(span("`a`"), "`` `a` ``");
        assert_eq!(span("a\n\n# b\u{1b}[2J<img>"), "`a  # b^[[2J<img>`");
        assert_eq!(span(" \n"), "(nothing)");
        let mut page = Page(String::new());
        page.block("text", "x\n```\n# y\n````\n<script>\r\n\u{9b}31m");
        assert_eq!(page.0, "`````text\nx\n```\n# y\n````\n<script>\n?31m\n`````\n");
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        let text = "ä".repeat(SHOWN);
        let shown = cut(&text);
        assert!(shown.len() < SHOWN + 100 && shown.ends_with("more bytes are not shown]"));
    }
}
