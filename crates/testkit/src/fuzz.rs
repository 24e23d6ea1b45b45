//! What must hold of any bytes from outside: checked by libFuzzer (`scripts/fuzz`) and on its corpora by ordinary tests.

use fluffy_base::{FrameDecoder, KernelRequest, Message, encode_frame};

/// The longest frame here. Small, so that too long ones are met.
const LIMIT: usize = 4096;

/// What a peer sends: the first byte says into how large pieces the rest comes apart on its way.
///
/// # Panics
///
/// When something does not hold.
pub fn frames(bytes: &[u8]) {
    let Some((piece, stream)) = bytes.split_first() else { return };
    let whole = decoded(stream.chunks(stream.len().max(1)));
    let pieces = decoded(stream.chunks(usize::from(*piece).max(1)));
    assert_eq!(whole, pieces, "frames do not depend on how the stream was cut");
    for payload in whole.0 {
        assert!((1..=LIMIT).contains(&payload.len()), "a payload has a size that was agreed");
        message(&payload);
    }
}

/// The payloads up to the first that is refused, and whether there was one.
fn decoded<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, bool) {
    let (mut decoder, mut payloads) = (FrameDecoder::new(LIMIT), Vec::new());
    for mut piece in pieces {
        loop {
            match decoder.next_frame(&mut piece) {
                Ok(Some(payload)) => payloads.push(payload),
                Ok(None) => break,
                Err(error) => {
                    let again = decoder.next_frame(&mut &[0_u8, 0, 0, 1, b'x'][..]);
                    assert_eq!(again, Err(error), "after a refusal nothing has a meaning");
                    return (payloads, true);
                }
            }
        }
        assert!(decoder.held() <= 2 * LIMIT, "no more is kept than one frame");
    }
    (payloads, false)
}

/// A message that is understood is understood again in our own spelling, and one that is not is answered with a fault that is.
fn message(payload: &[u8]) {
    match Message::parse(payload) {
        Ok(message) => {
            let bytes = message.to_bytes();
            assert_eq!(Message::parse(&bytes), Ok(message), "what is read can be written");
        }
        Err(fault) => {
            let answer = Message::Response { id: 1, outcome: Err(fault) };
            let bytes = answer.to_bytes();
            assert!(encode_frame(&bytes, 1 << 20).is_ok(), "a fault fits into a frame");
            assert_eq!(Message::parse(&bytes), Ok(answer), "a fault can be told");
        }
    }
}

/// A line that should be a request.
///
/// # Panics
///
/// When something does not hold.
pub fn requests(bytes: &[u8]) {
    let Ok(request) = KernelRequest::parse(bytes) else { return };
    let text = request.canonical();
    let again = KernelRequest::parse(text.as_bytes()).map(|again| again.canonical());
    assert_eq!(again.ok().as_ref(), Some(&text), "a request has one spelling, which is read again");
}
