//! Binds what is referred to, between parsing and planning: a function of the intent, the anchors and the trusted skills.
//!
//! **Invariant.** Nothing is guessed. Where several things are meant, all of them are named; where nothing is, that is said.

use fluffy_base::Excerpt;
use fluffy_forge::SkillName;
use serde_json::Value;

use crate::anchors::{Anchor, Anchors};
use crate::intent::{Change, Command, Given, Intent, Part, Reference, Wanted};
use crate::plan::Slot;
use crate::skill::Known;

/// What summarises a note, where it is trusted.
const SUMMARISER: &str = "summarize_note";
/// What says how long an answer is, and what holds where nothing is said.
const SENTENCES: (&str, u64, u64) = ("sentences", 3, 10);
/// The longest title that is made of a label, in characters.
const LONGEST_TITLE: usize = 100;

/// What is wanted, with everything bound.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// A coding task.
    Code,
    /// Skills.
    Skills(Vec<Bound>),
    /// Conversation.
    Talk,
    /// A text in another form, by a model.
    Transform {
        /// Of which anchor.
        of: Box<Anchor>,
        /// How.
        change: Change,
    },
    /// Something about the conversation.
    Meta(Command),
    /// Something is asked back.
    Clarify(String),
    /// It is not done.
    Unsupported(String),
}

/// A skill with all that it is given.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// Which.
    pub skill: SkillName,
    /// What it is given, by name.
    pub input: Vec<(String, Slot)>,
}

/// Why a reference cannot be bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unresolved {
    /// There is nothing of that kind.
    Nothing {
        /// What was referred to.
        reference: Reference,
    },
    /// Several are meant.
    Ambiguous {
        /// What was referred to.
        reference: Reference,
        /// What is meant, the newest first: the id and what it is.
        candidates: Vec<(String, String)>,
    },
    /// What is meant has nothing of what is wanted.
    Without {
        /// What is meant.
        label: String,
        /// What it would have to have, in words.
        part: &'static str,
    },
    /// What is meant cannot be done again.
    NotAgain {
        /// What is meant.
        label: String,
    },
}

/// Binds an intent; also names the anchors that were meant, by reference.
pub fn resolve(
    intent: Intent,
    anchors: &Anchors,
    known: &[Known],
) -> Result<(Action, Vec<(String, String)>), Unresolved> {
    let mut binding = Binding { anchors, known, bound: Vec::new() };
    let action = match intent {
        Intent::Code => Action::Code,
        Intent::Talk => Action::Talk,
        Intent::Meta(command) => Action::Meta(command),
        Intent::Clarify { question } => Action::Clarify(question),
        Intent::Unsupported { why } => Action::Unsupported(why),
        Intent::Skills(wanted) => binding.skills(wanted)?,
        Intent::Transform { of, change } => binding.transform(&of, change)?,
    };
    Ok((action, binding.bound))
}

struct Binding<'a> {
    anchors: &'a Anchors,
    known: &'a [Known],
    bound: Vec<(String, String)>,
}

impl<'a> Binding<'a> {
    fn known(&self, name: &str) -> Option<&Known> {
        self.known.iter().find(|known| known.name().as_str() == name)
    }

    /// The anchor that is meant.
    fn find(&mut self, reference: &Reference) -> Result<Anchor, Unresolved> {
        let found: Vec<&'a Anchor> = match reference {
            Reference::Last => self.anchors.newest().take(1).collect(),
            Reference::LastOf(part) => self.newest_of(part),
            Reference::Run(prefix) => {
                self.anchors.newest().filter(|it| it.is_run(prefix)).collect()
            }
            // A step before is no anchor; where there is none, nothing is meant.
            Reference::Before => Vec::new(),
        };
        let reference = reference.clone();
        match found.as_slice() {
            [] => Err(Unresolved::Nothing { reference }),
            [one] => {
                self.bound.push((reference.to_string(), one.execution.clone()));
                Ok((*one).clone())
            }
            several => {
                let told = |it: &&Anchor| (it.execution.clone(), it.label.clone());
                let candidates = several.iter().map(told).collect();
                Err(Unresolved::Ambiguous { reference, candidates })
            }
        }
    }

    /// The newest of the skill of this name, or of each skill with this part in its name.
    fn newest_of(&self, part: &str) -> Vec<&'a Anchor> {
        let bare = |skill: &str| skill.trim_matches('_').to_owned();
        let exact = self.anchors.newest().find(|it| it.skill == part || bare(&it.skill) == part);
        if let Some(exact) = exact {
            return vec![exact];
        }
        let mut found: Vec<&'a Anchor> = Vec::new();
        for anchor in self.anchors.newest().filter(|anchor| anchor.skill.contains(part)) {
            if !found.iter().any(|seen| seen.skill == anchor.skill) {
                found.push(anchor);
            }
        }
        found
    }

    fn skills(&mut self, wanted: Vec<Wanted>) -> Result<Action, Unresolved> {
        let mut steps = Vec::new();
        let mut before: Option<SkillName> = None;
        for Wanted { skill, input } in wanted {
            let mut slots = Vec::new();
            for (name, given) in input {
                let slot = match given {
                    Given::Value(value) => Slot::Value(value),
                    Given::Of(Reference::Before, part) => self.of_before(before.as_ref(), part)?,
                    Given::Of(reference, part) => {
                        let anchor = self.find(&reference)?;
                        Slot::Value(part_of(&anchor, part)?)
                    }
                };
                slots.push((name, slot));
            }
            before = Some(skill.clone());
            steps.push(Bound { skill, input: slots });
        }
        Ok(Action::Skills(steps))
    }

    /// What the step before gives, by the way to it in what that skill promises to give.
    fn of_before(&self, before: Option<&SkillName>, part: Part) -> Result<Slot, Unresolved> {
        let known = before.and_then(|name| self.known(name.as_str()));
        let way = known.and_then(|known| match part {
            Part::Note => known.note_way(),
            Part::Text => known.text_way(),
            Part::Title => None,
        });
        let label = before.map_or_else(|| "the step before".to_owned(), ToString::to_string);
        way.map(Slot::Before).ok_or(Unresolved::Without { label, part: part.words() })
    }

    fn transform(&mut self, of: &Reference, change: Change) -> Result<Action, Unresolved> {
        let anchor = self.find(of)?;
        match &change {
            Change::Again => self.again(&anchor),
            Change::Summarise => Ok(self.summarised(anchor, change)),
            Change::Shorter | Change::Longer => Ok(self.resized(anchor, change)),
            Change::Other(_) => Ok(Action::Transform { of: Box::new(anchor), change }),
        }
    }

    /// The same skill with the same input.
    fn again(&self, anchor: &Anchor) -> Result<Action, Unresolved> {
        let known = self.known(&anchor.skill);
        let input = anchor.input.as_ref().and_then(Value::as_object);
        let (Some(known), Some(input)) = (known, input) else {
            return Err(Unresolved::NotAgain { label: anchor.label.clone() });
        };
        let slots = input.iter().map(|(name, value)| (name.clone(), Slot::Value(value.clone())));
        Ok(Action::Skills(vec![Bound { skill: known.name().clone(), input: slots.collect() }]))
    }

    /// A note by the skill for that, anything else by a model.
    fn summarised(&self, anchor: Anchor, change: Change) -> Action {
        let known = self.known(SUMMARISER).filter(|known| known.takes("note"));
        match (known, &anchor.note) {
            (Some(known), Some(note)) => {
                let input = vec![("note".to_owned(), Slot::Value(note.as_str().into()))];
                Action::Skills(vec![Bound { skill: known.name().clone(), input }])
            }
            _other => Action::Transform { of: Box::new(anchor), change },
        }
    }

    /// Again with another number of sentences where the skill takes one, else by a model.
    fn resized(&self, anchor: Anchor, change: Change) -> Action {
        let (member, usual, most) = SENTENCES;
        let takes = self.known(&anchor.skill).is_some_and(|known| known.takes(member));
        let given = anchor.input.as_ref().and_then(|input| input.get(member)?.as_u64());
        let count = given.unwrap_or(usual);
        let count = match &change {
            Change::Longer => count.saturating_mul(2).min(most),
            _shorter => (count / 2).max(1),
        };
        match (takes, self.again(&anchor)) {
            (true, Ok(Action::Skills(mut steps))) => {
                for step in &mut steps {
                    step.input.retain(|(name, _)| name != member);
                    step.input.push((member.to_owned(), Slot::Value(count.into())));
                }
                Action::Skills(steps)
            }
            _other => Action::Transform { of: Box::new(anchor), change },
        }
    }
}

/// A part of an anchor.
fn part_of(anchor: &Anchor, part: Part) -> Result<Value, Unresolved> {
    let found = match part {
        Part::Note => anchor.note.clone(),
        Part::Text => anchor.text.clone(),
        Part::Title => Some(Excerpt::new(&anchor.label, LONGEST_TITLE).to_string()),
    };
    let label = anchor.label.clone();
    found.map(Value::from).ok_or(Unresolved::Without { label, part: part.words() })
}

impl Part {
    const fn words(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Text => "text",
            Self::Title => "title",
        }
    }
}
