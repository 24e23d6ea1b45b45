//! Answers that are no success: what they mean, whatever server says it and however.

use fluffy_provider::{Answer, Protocol, ProviderError};
use serde_json::json;

fn refused(status: u16, headers: &[(&str, &str)], body: &str) -> ProviderError {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let answer = Answer { status, headers: headers.collect(), body: body.as_bytes().to_vec() };
    let chat = Protocol::OpenaiChat.adapter().refusal(&answer);
    for protocol in [Protocol::OpenaiCompatible, Protocol::OpenaiResponses] {
        assert_eq!(protocol.adapter().refusal(&answer), chat);
    }
    chat
}

fn named(status: u16, code: &str, kind: &str, message: &str) -> ProviderError {
    let body = json!({"error": {"code": code, "type": kind, "message": message, "param": null}});
    refused(status, &[], &body.to_string())
}

#[test]
fn the_vendors_own_names_for_errors_are_known() {
    let words = || "words".to_owned();
    let invalid = "invalid_request_error";
    let limited = ProviderError::RateLimited { message: words(), retry_after_ms: None };
    let busy = ProviderError::Overloaded { message: words(), retry_after_ms: None };
    for (status, code, kind, error) in [
        (401, "invalid_api_key", invalid, ProviderError::BadKey(words())),
        (401, "", invalid, ProviderError::BadKey(words())),
        (403, "", "", ProviderError::BadKey(words())),
        (429, "insufficient_quota", "insufficient_quota", ProviderError::QuotaExhausted(words())),
        (402, "", "", ProviderError::QuotaExhausted(words())),
        (400, "context_length_exceeded", invalid, ProviderError::ContextTooLong(words())),
        (413, "", "", ProviderError::ContextTooLong(words())),
        (400, "content_filter", "", ProviderError::Filtered(words())),
        (400, "invalid_prompt", invalid, ProviderError::Filtered(words())),
        (404, "model_not_found", invalid, ProviderError::NoSuchModel(words())),
        (429, "rate_limit_exceeded", "tokens", limited.clone()),
        (429, "", "", limited),
        (500, "", "server_error", busy.clone()),
        (503, "", "", busy.clone()),
        (529, "", "", busy),
        (400, "unsupported_parameter", invalid, ProviderError::Refused(words())),
        (501, "", "not_supported_error", ProviderError::Refused(words())),
        (400, "", "", ProviderError::Refused(words())),
    ] {
        assert_eq!(named(status, code, kind, "words"), error, "{status} {code} {kind}");
    }
}

#[test]
fn servers_without_names_are_understood_by_their_words() {
    let model = |name: &str| ProviderError::NoSuchModel(name.to_owned());
    for (status, body, error) in [
        (404, r#"{"error":"model 'qwen3:4b' not found"}"#, model("qwen3:4b")),
        (404, r#"{"error":"model \"a/b\" not found, try pulling it first"}"#, model("a/b")),
        (
            404,
            r#"{"object":"error","message":"The model `x` does not exist.","code":404}"#,
            model("x"),
        ),
        (400, r#"{"error":{"message":"z is not a valid model ID","code":400}}"#, model("z")),
        (400, r#"{"code":"invalid-argument","error":"Model not found: grok-0"}"#, model("grok-0")),
    ] {
        assert_eq!(refused(status, &[], body), error, "{body}");
    }
    let long = |status, body| {
        let error = refused(status, &[], body);
        assert!(matches!(error, ProviderError::ContextTooLong(_)), "{error:?}");
    };
    long(
        400,
        r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_ctx":4096}}"#,
    );
    long(
        400,
        r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}"#,
    );
    long(500, r#"{"error":"input length exceeds the context length"}"#);
    long(
        429,
        r#"{"error":{"code":"rate_limit_exceeded","type":"tokens","message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000."}}"#,
    );
    let key =
        refused(400, &[], r#"{"code":"invalid-argument","error":"Incorrect API key provided."}"#);
    assert!(matches!(key, ProviderError::BadKey(_)), "{key:?}");
    let flagged = r#"{"error":{"code":403,"message":"Your input was flagged","metadata":{}}}"#;
    assert!(matches!(refused(403, &[], flagged), ProviderError::Filtered(_)));
    let loading = r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#;
    assert!(refused(503, &[], loading).is_retryable());
}

#[test]
fn what_is_no_error_of_the_protocol_is_shown_as_it_came() {
    let page = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>";
    let shown = refused(502, &[], page).to_string();
    assert_eq!(shown, "the provider is overloaded: status 502: 502 Bad Gateway");
    assert_eq!(
        refused(404, &[], "404 page not found\n"),
        ProviderError::Refused("status 404: 404 page not found".to_owned()),
        "a wrong address is no wrong model"
    );
    assert_eq!(
        refused(400, &[], ""),
        ProviderError::Refused("status 400 without a word".to_owned())
    );
    assert_eq!(refused(422, &[], r#"{"detail":"no"}"#), ProviderError::Refused("no".to_owned()));
    let endless = "x".repeat(1 << 20);
    assert!(refused(400, &[], &endless).to_string().len() < 500);
    for odd in ["[]", "null", "7", "\"\"", "{\"error\":null}", "{\"error\":[]}", "\u{0}", "{"] {
        assert!(!refused(400, &[], odd).to_string().is_empty());
    }
}

#[test]
fn how_long_to_wait_is_read_from_the_headers_or_from_the_words() {
    let body = |message: &str| {
        let error = json!({"code": "rate_limit_exceeded", "message": message});
        json!({ "error": error }).to_string()
    };
    let wait = |headers: &[(&str, &str)], message: &str| {
        refused(429, headers, &body(message)).retry_after_ms()
    };
    assert_eq!(wait(&[("retry-after", "7")], "Please try again in 20ms."), Some(7_000));
    assert_eq!(wait(&[], "Please try again in 1.898s. Visit x"), Some(1_898));
    assert_eq!(wait(&[], "Please try again in 20ms."), Some(20));
    assert_eq!(wait(&[], "Please try again in 6m0s."), Some(360_000));
    for odd in ["", "try again in ", "try again in a while", "try again in 99999999999999999999s"] {
        assert_eq!(wait(&[], odd), None, "{odd}");
    }
}

#[test]
fn the_servers_name_of_the_request_stays_with_its_words() {
    let headers = [("x-request-id", "req_1")];
    let error = refused(500, &headers, r#"{"error":{"message":"oops"}}"#);
    assert_eq!(error.to_string(), "the provider is overloaded: oops (request req_1)");
}

#[test]
fn lists_of_models_are_read_with_what_servers_add() {
    let adapter = Protocol::OpenaiCompatible.adapter();
    let body = json!({"object": "list", "data": [
        {"id": "gpt", "object": "model", "owned_by": "openai"},
        {"id": "vllm", "max_model_len": 4096},
        {"id": "/m.gguf", "meta": {"n_ctx_train": 8192, "n_vocab": 1}},
        {"id": "a/b", "name": "A: B", "context_length": 7,
         "top_provider": {"max_completion_tokens": 5}},
        {"id": ""}, {"name": "nameless"}, 7,
    ], "models": [{"name": "other"}]});
    let page = adapter.models_in(body.to_string().as_bytes()).unwrap();
    let models = page.models.iter().map(|model| {
        (model.id.as_str(), model.title.as_deref(), model.context_window, model.max_output_tokens)
    });
    assert_eq!(
        models.collect::<Vec<_>>(),
        [
            ("gpt", None, None, None),
            ("vllm", None, Some(4096), None),
            ("/m.gguf", None, Some(8192), None),
            ("a/b", Some("A: B"), Some(7), Some(5)),
        ]
    );
    assert_eq!(page.next, None);
    assert_eq!(adapter.models_in(br#"{"object":"list","data":null}"#).unwrap().models, []);
    assert_eq!(adapter.models_in(br#"[{"id":"x"}]"#).unwrap().models.len(), 1);
    for odd in ["", "<html>", "{}", "7"] {
        assert!(adapter.models_in(odd.as_bytes()).is_err(), "{odd}");
    }
}
