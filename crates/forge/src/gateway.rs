//! The seam to a model on the person's own machine, for advice and for skills that were promised one.
//!
//! **Invariant.** What a gateway says is text of a stranger. Nobody decides anything by it: it is shown, put into a
//! packet or handed to a skill, and whatever comes of that is judged as if nobody had said it.

/// The longest prompt, in characters.
pub const MAX_PROMPT_CHARS: usize = 8_000;

/// The longest answer, in characters.
pub const MAX_ANSWER_CHARS: usize = 32_000;

/// How many texts are embedded at once.
pub const MAX_TEXTS: usize = 256;

/// How many numbers stand for a text at most.
pub const MAX_DIMENSIONS: usize = 8_192;

/// Somewhere a local model can be asked. Every implementation keeps these promises:
///
/// 1. it answers within a time of its own choice, if only with an error, and asks nothing twice;
/// 2. what it is asked and what it answers is within the limits of this file, checked by [`prompt_fits`],
///    [`texts_fit`], [`answer_fits`] and [`vectors_fit`];
/// 3. it reaches the one server that the person configured, and no other.
pub trait Gateway: Send + Sync {
    /// What the model says to a prompt.
    fn generate(&self, prompt: &str) -> Result<String, GatewayError>;

    /// The numbers that stand for each text, in their order: as many for one as for another.
    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, GatewayError>;
}

/// Why a gateway gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GatewayError {
    /// There is none.
    #[error("there is no gateway to a local model")]
    Absent,
    /// Nobody answers there, or the connection broke.
    #[error("the gateway cannot be reached: {0}")]
    Unreachable(String),
    /// It took too long.
    #[error("the gateway gave no answer within {waited_ms} ms")]
    Late {
        /// How long was waited.
        waited_ms: u64,
    },
    /// It declined.
    #[error("the gateway declined: {0}")]
    Declined(String),
    /// What came is no answer.
    #[error("the gateway's answer makes no sense: {0}")]
    Garbled(String),
    /// There is nothing in the answer.
    #[error("the gateway's answer is empty")]
    Empty,
    /// The answer is too long.
    #[error("the gateway's answer is longer than {most} characters")]
    AnswerTooLong {
        /// How long it may be.
        most: usize,
    },
    /// Too much was asked.
    #[error("{what} is more than a gateway is asked: at most {most}")]
    TooMuch {
        /// What there is too much of.
        what: &'static str,
        /// How much there may be.
        most: usize,
    },
}

impl GatewayError {
    /// What to do about it.
    pub const fn fix(&self) -> &'static str {
        match self {
            Self::Absent | Self::Unreachable(_) => {
                "start a server that speaks OpenAI's protocol, or name its address in `forge.gateway.url`"
            }
            Self::Late { .. } => "choose a faster model, or raise `forge.gateway.timeout_ms`",
            Self::Declined(_) => "check `forge.gateway.model` and what the server says",
            Self::Garbled(_) => "check that `forge.gateway.url` is a server of OpenAI's protocol",
            Self::Empty | Self::AnswerTooLong { .. } => "ask again, or choose another model",
            Self::TooMuch { .. } => "ask for less at once",
        }
    }
}

/// No gateway at all.
impl Gateway for () {
    fn generate(&self, _: &str) -> Result<String, GatewayError> {
        Err(GatewayError::Absent)
    }

    fn embed(&self, _: &[String]) -> Result<Vec<Vec<f32>>, GatewayError> {
        Err(GatewayError::Absent)
    }
}

/// Refuses a prompt that is too long; nothing is cut silently.
pub fn prompt_fits(prompt: &str) -> Result<(), GatewayError> {
    let most = MAX_PROMPT_CHARS;
    if longer(prompt, most) {
        return Err(GatewayError::TooMuch { what: "the prompt", most });
    }
    Ok(())
}

/// Refuses too many texts, or one that is too long.
pub fn texts_fit(texts: &[String]) -> Result<(), GatewayError> {
    if texts.len() > MAX_TEXTS {
        return Err(GatewayError::TooMuch { what: "the number of texts", most: MAX_TEXTS });
    }
    if texts.iter().any(|text| longer(text, MAX_PROMPT_CHARS)) {
        return Err(GatewayError::TooMuch { what: "a text", most: MAX_PROMPT_CHARS });
    }
    Ok(())
}

/// The answer, if it is one.
pub fn answer_fits(answer: String) -> Result<String, GatewayError> {
    if longer(&answer, MAX_ANSWER_CHARS) {
        return Err(GatewayError::AnswerTooLong { most: MAX_ANSWER_CHARS });
    }
    if fluffy_base::is_blank(&answer) {
        return Err(GatewayError::Empty);
    }
    Ok(answer)
}

/// The numbers, if there are as many lists as texts, all of one length and every number a number.
pub fn vectors_fit(vectors: Vec<Vec<f32>>, texts: usize) -> Result<Vec<Vec<f32>>, GatewayError> {
    let garbled = |why: String| Err(GatewayError::Garbled(why));
    if vectors.len() != texts {
        return garbled(format!("{} lists of numbers for {texts} texts", vectors.len()));
    }
    let length = vectors.first().map_or(1, Vec::len);
    if length == 0 || length > MAX_DIMENSIONS || vectors.iter().any(|it| it.len() != length) {
        return garbled(
            "the lists of numbers are empty, too long or of several lengths".to_owned(),
        );
    }
    if vectors.iter().flatten().any(|number| !number.is_finite()) {
        return garbled("there is something among the numbers that is none".to_owned());
    }
    Ok(vectors)
}

fn longer(text: &str, most: usize) -> bool {
    text.len() > most && text.chars().nth(most).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_and_answered_has_limits() {
        prompt_fits(&"é".repeat(MAX_PROMPT_CHARS)).unwrap();
        prompt_fits(&"é".repeat(MAX_PROMPT_CHARS + 1)).unwrap_err();
        texts_fit(&vec![String::new(); MAX_TEXTS]).unwrap();
        texts_fit(&vec![String::new(); MAX_TEXTS + 1]).unwrap_err();
        texts_fit(&["x".repeat(MAX_PROMPT_CHARS + 1)]).unwrap_err();
        assert_eq!(answer_fits(" \u{200b}\n".to_owned()), Err(GatewayError::Empty));
        answer_fits("x".repeat(MAX_ANSWER_CHARS)).unwrap();
        answer_fits("x".repeat(MAX_ANSWER_CHARS + 1)).unwrap_err();
    }

    #[test]
    fn numbers_for_texts_are_as_many_as_the_texts_and_all_alike() {
        vectors_fit(vec![vec![0.5, 1.0], vec![0.0, -1.0]], 2).unwrap();
        vectors_fit(vec![], 0).unwrap();
        for (vectors, texts) in [
            (vec![vec![1.0]], 2),
            (vec![vec![1.0], vec![1.0, 2.0]], 2),
            (vec![vec![]], 1),
            (vec![vec![f32::NAN]], 1),
            (vec![vec![f32::INFINITY]], 1),
            (vec![vec![0.0; MAX_DIMENSIONS + 1]], 1),
        ] {
            vectors_fit(vectors, texts).unwrap_err();
        }
    }

    #[test]
    fn where_there_is_no_gateway_nothing_is_said() {
        assert_eq!(().generate("x"), Err(GatewayError::Absent));
        assert_eq!(().embed(&[]), Err(GatewayError::Absent));
    }
}
