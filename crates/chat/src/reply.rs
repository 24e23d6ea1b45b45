//! What comes back for a message: the canonical form, of which every other is made at the edge.

use fluffy_forge::ExecutionRecord;

use crate::anchors::Anchor;
use crate::confirm::Pending;
use crate::plan::{Origin, Plan};
use crate::record::TalkRecord;

/// What became of a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// What kind of answer it is.
    pub kind: Kind,
    /// The answer in words, for people.
    pub text: String,
    /// Whether those words were told already, as they came.
    pub streamed: bool,
    /// What a person is asked.
    pub pending: Option<Pending>,
    /// Whether everything is to be shown.
    pub verbose: bool,
    /// How it came about.
    pub trace: Trace,
}

/// What kind of answer a reply is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Words.
    Talk,
    /// An earlier result in another form.
    Transform,
    /// Skills ran, and did what they should.
    Ran,
    /// A coding task came to its end, whatever that was.
    Task,
    /// A person has to agree first.
    Confirm,
    /// Something has to be said more clearly.
    Question,
    /// Something about the conversation.
    Meta,
    /// It is not done.
    Unsupported,
    /// The person said no.
    Declined,
    /// A yes that does not count.
    Refused,
    /// It was tried, and failed.
    Failed,
}

/// How a reply came about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    /// The word for what was wanted.
    pub intent: &'static str,
    /// Who found that out.
    pub origin: Option<Origin>,
    /// Why a model's object did not count, if it did not.
    pub odd: Option<&'static str>,
    /// What references were bound to: what was said, and the run or the session.
    pub resolved: Vec<(String, String)>,
    /// What was planned.
    pub plan: Option<Plan>,
    /// What the ledger has of it.
    pub records: Vec<Record>,
    /// What can be referred to now, the newest first.
    pub anchors: Vec<Anchor>,
}

/// What the ledger has of something that was done.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// A run of a skill.
    Run(Box<ExecutionRecord>),
    /// Words.
    Talk(Box<TalkRecord>),
}

impl Kind {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Talk => "talk",
            Self::Transform => "transform",
            Self::Ran => "ran",
            Self::Task => "task",
            Self::Confirm => "confirm",
            Self::Question => "question",
            Self::Meta => "meta",
            Self::Unsupported => "unsupported",
            Self::Declined => "declined",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}
