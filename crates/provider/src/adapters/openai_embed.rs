//! OpenAI's embeddings: texts out, lists of numbers back.

use serde_json::{Value, json};

use crate::adapters::openai::{self, at, list};
use crate::{Ask, EmbedRequest, Endpoint, ProviderError};

/// How many numbers a text may have.
const MAX_NUMBERS: usize = 16_384;

/// The request.
pub(crate) fn ask(request: &EmbedRequest, endpoint: &Endpoint) -> Ask {
    let EmbedRequest { model, texts } = request;
    let body = json!({"model": model, "input": texts, "encoding_format": "float"});
    openai::post(endpoint, "/embeddings", &body)
}

/// The numbers, in the order of the texts and not of the answer: each text has its own once, or there is an error.
pub(crate) fn read(body: &[u8], texts: usize) -> Result<Vec<Vec<f32>>, ProviderError> {
    let body: Value = serde_json::from_slice(body)
        .map_err(|error| malformed(format!("the numbers for texts: {error}")))?;
    let found = list(&body, "/data");
    if found.len() != texts {
        return Err(malformed(format!("{} lists of numbers for {texts} texts", found.len())));
    }
    let mut vectors: Vec<Option<Vec<f32>>> = vec![None; texts];
    for (position, one) in found.iter().enumerate() {
        // Some servers do not number them.
        let index = match at(one, "/index") {
            Value::Null => Some(position),
            index => index.as_u64().and_then(|index| usize::try_from(index).ok()),
        };
        let place = index.and_then(|index| vectors.get_mut(index));
        let place = place.filter(|place| place.is_none());
        let place = place.ok_or_else(|| malformed("a text has numbers twice".to_owned()))?;
        *place = Some(numbers(list(one, "/embedding"))?);
    }
    Ok(vectors.into_iter().flatten().collect())
}

fn numbers(list: &[Value]) -> Result<Vec<f32>, ProviderError> {
    if list.is_empty() || list.len() > MAX_NUMBERS {
        return Err(malformed(format!("a text has {} numbers", list.len())));
    }
    #[expect(clippy::cast_possible_truncation, reason = "what does not fit is refused behind it")]
    let read = |number: &Value| number.as_f64().map(|number| number as f32);
    let read = list.iter().map(|number| read(number).filter(|number| number.is_finite()));
    read.collect::<Option<_>>().ok_or_else(|| malformed("a number is none".to_owned()))
}

fn malformed(why: String) -> ProviderError {
    ProviderError::Malformed(why)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(body: &Value, texts: usize) -> Result<Vec<Vec<f32>>, ProviderError> {
        read(body.to_string().as_bytes(), texts)
    }

    #[test]
    fn numbers_come_in_the_order_of_the_texts() {
        let body = json!({"object": "list", "model": "m", "data": [
            {"object": "embedding", "index": 1, "embedding": [0.5, 1]},
            {"object": "embedding", "index": 0, "embedding": [-1, 0.25]},
        ]});
        assert_eq!(check(&body, 2).unwrap(), [[-1.0, 0.25], [0.5, 1.0]]);
        let bare = json!({"data": [{"embedding": [1]}, {"embedding": [2]}]});
        assert_eq!(check(&bare, 2).unwrap(), [[1.0], [2.0]]);
        assert!(check(&json!({"data": []}), 0).unwrap().is_empty());
    }

    #[test]
    fn numbers_that_are_none_or_belong_to_no_text_are_refused() {
        for (body, texts) in [
            (json!({}), 1),
            (json!([]), 1),
            (json!({"data": {}}), 1),
            (json!({"data": [{"embedding": [1]}]}), 2),
            (json!({"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}), 2),
            (json!({"data": [{"index": 7, "embedding": [1]}]}), 1),
            (json!({"data": [{"index": -1, "embedding": [1]}]}), 1),
            (json!({"data": [{"embedding": []}]}), 1),
            (json!({"data": [{"embedding": ["1"]}]}), 1),
            (json!({"data": [{"embedding": [1e300]}]}), 1),
            (json!({"data": [{"embedding": "AAAA"}]}), 1),
            (json!({"data": [{"embedding": vec![0; MAX_NUMBERS + 1]}]}), 1),
        ] {
            assert!(matches!(check(&body, texts), Err(ProviderError::Malformed(_))), "{body}");
        }
        assert!(read(b"<html>", 1).is_err());
    }

    proptest! {
        #[test]
        fn no_body_breaks_it(body in prop::collection::vec(any::<u8>(), 0..64), texts in 0_usize..4) {
            let _any = read(&body, texts);
        }
    }
}
