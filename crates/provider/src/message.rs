//! The normal form of a conversation with a model.
//!
//! It holds what every vendor's protocol needs to be given back: the ids of calls, several calls in one turn,
//! and the sealed blocks in which some models keep their reasoning.

use fluffy_base::Json;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Everything a model is told for one turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRequest {
    /// The model's name at its provider.
    pub model: String,
    /// What stands above the conversation.
    pub system: String,
    /// The tools the model may call.
    pub tools: Vec<ToolDefinition>,
    /// The conversation, the oldest message first.
    pub messages: Vec<Message>,
    /// The longest answer that is wanted, in tokens.
    pub max_output_tokens: u64,
}

/// Texts that numbers are wanted for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmbedRequest {
    /// The model's name at its provider.
    pub model: String,
    /// The texts.
    pub texts: Vec<String>,
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolDefinition {
    /// Its name, such as `fs.read`. Adapters map it to what their vendor accepts, and back.
    pub name: String,
    /// What it does, in a line.
    pub summary: String,
    /// JSON Schema of its arguments.
    #[serde(deserialize_with = "normal_json")]
    pub schema: Json,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case", deny_unknown_fields)]
pub enum Message {
    /// What a person, or the loop in their name, says.
    User {
        /// The words.
        text: String,
    },
    /// What the model said.
    Assistant {
        /// The words.
        text: String,
        /// What it asked for, in its order.
        calls: Vec<Call>,
        /// What has to be handed back to it as it came.
        reasoning: Vec<ReasoningBlock>,
    },
    /// What came of every call of the message before, in the order of the calls.
    Results {
        /// One for each call.
        results: Vec<CallResult>,
    },
}

/// What a model asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The provider's id of the call, repeated in its result.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as the model wrote them: any text, perhaps no JSON at all. Empty means no arguments.
    /// Adapters that must hand back an object write an empty one where this is none.
    pub arguments: String,
}

/// What came of a call, as the model is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallResult {
    /// Which call.
    pub call_id: String,
    /// Which tool.
    pub tool: String,
    /// What the model reads.
    pub content: String,
    /// What became of it.
    pub outcome: CallOutcome,
}

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// It was allowed, and did what was asked.
    Done,
    /// It was allowed, and did not.
    Failed,
    /// A rule, the workflow or a person refused it.
    Denied,
    /// It was not understood: no such tool, or arguments that it does not take. Nothing ran.
    Invalid,
}

/// Something that a model wants back exactly as it came, and in its place: a signature of its reasoning, or
/// the reasoning itself, sealed. Nobody but the provider it came from can read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReasoningBlock {
    /// The provider it came from; others leave it out.
    pub origin: String,
    /// The block, in whatever form its adapter chose.
    pub data: String,
    /// Where in its turn it stood.
    pub place: Place,
}

/// A place within a turn, by what stands before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// How many bytes of the turn's text.
    pub text: usize,
    /// How many of its calls.
    pub calls: usize,
}

impl ModelRequest {
    /// How many bytes of the request the model reads, without what the protocol adds.
    pub fn bytes(&self) -> usize {
        let tools: usize = self.tools.iter().map(ToolDefinition::bytes).sum();
        let messages: usize = self.messages.iter().map(Message::bytes).sum();
        self.system.len().saturating_add(tools).saturating_add(messages)
    }

    /// The results that the turn before was answered with: none where it had no calls.
    pub fn last_results(&self) -> &[CallResult] {
        let since = self.messages.iter().rev();
        let mut since = since.take_while(|message| !matches!(message, Message::Assistant { .. }));
        since
            .find_map(|message| match message {
                Message::Results { results } => Some(results.as_slice()),
                Message::User { .. } | Message::Assistant { .. } => None,
            })
            .unwrap_or_default()
    }
}

impl ToolDefinition {
    /// How many bytes the model reads.
    pub fn bytes(&self) -> usize {
        self.name.len() + self.summary.len() + self.schema.canonical().len()
    }
}

impl Message {
    /// How many bytes the model reads.
    pub fn bytes(&self) -> usize {
        match self {
            Self::User { text } => text.len(),
            Self::Assistant { text, calls, reasoning } => {
                let calls = calls.iter().map(|call| {
                    call.id
                        .len()
                        .saturating_add(call.name.len())
                        .saturating_add(call.arguments.len())
                });
                let reasoning = reasoning.iter().map(|block| block.data.len());
                calls.chain(reasoning).fold(text.len(), usize::saturating_add)
            }
            Self::Results { results } => {
                let results = results
                    .iter()
                    .map(|result| result.call_id.len() + result.tool.len() + result.content.len());
                results.fold(0, usize::saturating_add)
            }
        }
    }
}

impl CallOutcome {
    /// Whether the model is told that something went wrong.
    pub const fn is_error(self) -> bool {
        match self {
            Self::Done => false,
            Self::Failed | Self::Denied | Self::Invalid => true,
        }
    }

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::Invalid => "invalid",
        }
    }
}

fn normal_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
    Json::new(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(tool: &str) -> CallResult {
        CallResult {
            call_id: "1".to_owned(),
            tool: tool.to_owned(),
            content: String::new(),
            outcome: CallOutcome::Done,
        }
    }

    fn request(messages: Vec<Message>) -> ModelRequest {
        ModelRequest {
            model: "m".to_owned(),
            system: "s".to_owned(),
            tools: vec![ToolDefinition {
                name: "fs.read".to_owned(),
                summary: "Read".to_owned(),
                schema: Json::empty_object(),
            }],
            messages,
            max_output_tokens: 1,
        }
    }

    #[test]
    fn the_last_results_are_those_of_the_turn_before_and_of_no_earlier_one() {
        let user = || Message::User { text: "t".to_owned() };
        let said = || Message::Assistant { text: "a".to_owned(), calls: vec![], reasoning: vec![] };
        let results = |tool| Message::Results { results: vec![result(tool)] };
        let tools = |messages| {
            let request = request(messages);
            request.last_results().iter().map(|r| r.tool.clone()).collect::<Vec<_>>()
        };
        assert_eq!(tools(vec![user(), said(), results("a"), said(), results("b")]), ["b"]);
        assert_eq!(tools(vec![user(), said(), results("a"), user()]), ["a"]);
        assert!(tools(vec![user(), said(), results("a"), said(), user()]).is_empty());
        assert!(tools(vec![user()]).is_empty());
    }

    #[test]
    fn a_request_survives_being_written_and_read() {
        let block = ReasoningBlock {
            origin: "x".to_owned(),
            data: "sealed".to_owned(),
            place: Place { text: 1, calls: 0 },
        };
        let request = request(vec![
            Message::User { text: "hello".to_owned() },
            Message::Assistant {
                text: "a".to_owned(),
                calls: vec![Call {
                    id: "1".to_owned(),
                    name: "fs.read".to_owned(),
                    arguments: "{nonsense".to_owned(),
                }],
                reasoning: vec![block],
            },
            Message::Results { results: vec![result("fs.read")] },
        ]);
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<ModelRequest>(&text).unwrap(), request);
    }
}
