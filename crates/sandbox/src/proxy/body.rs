//! How long the body of a request is, and that it is no longer.
//!
//! **Invariant.** A byte is accepted only if every reading of the request so far makes it part of this
//! request's body.

use super::record::Refusal;

/// What is left of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Body {
    /// So many bytes.
    Length(u64),
    /// Chunks, up to an empty one. Extensions of chunks and fields behind the last are refused: no client
    /// in use sends them, and programs disagree on how to read them.
    Chunked(Chunked),
}

/// Where in a chunked body the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunked {
    Size { value: u64, digits: u8 },
    SizeEnd { value: u64 },
    Data { left: u64 },
    DataEnd,
    DataEndLf,
    LastEnd,
    LastEndLf,
    Done,
}

impl Body {
    pub(super) const NONE: Self = Self::Length(0);
    pub(super) const CHUNKED: Self = Self::Chunked(Chunked::Size { value: 0, digits: 0 });

    /// Whether nothing more belongs to it.
    pub(super) fn is_complete(&self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunked(Chunked::Done))
    }

    /// How many of these bytes belong to the body, and what is wrong with the next, if it does not.
    pub(super) fn accept(&mut self, bytes: &[u8]) -> (usize, Option<Refusal>) {
        let mut taken = 0;
        while let Some(rest) = bytes.get(taken..).filter(|rest| !rest.is_empty()) {
            if self.is_complete() {
                return (taken, Some(Refusal::Second));
            }
            let step = match self {
                Self::Length(left) => Ok(take(left, rest.len())),
                Self::Chunked(chunked) => chunked.step(rest),
            };
            match step {
                Ok(count) => taken += count,
                Err(refusal) => return (taken, Some(refusal)),
            }
        }
        (taken, None)
    }
}

impl Chunked {
    /// Takes at least one of the bytes, of which there is at least one.
    fn step(&mut self, bytes: &[u8]) -> Result<usize, Refusal> {
        const WRONG: Refusal = Refusal::Malformed("a chunk of the body");
        let Some(&byte) = bytes.first() else { return Ok(0) };
        let mut taken = 1;
        *self = match (*self, byte) {
            (Self::Size { value, digits }, _) if byte.is_ascii_hexdigit() && digits < 15 => {
                let digit = char::from(byte).to_digit(16).ok_or(WRONG)?;
                Self::Size { value: (value << 4) | u64::from(digit), digits: digits + 1 }
            }
            (Self::Size { value, digits: 1.. }, b'\r') => Self::SizeEnd { value },
            (Self::SizeEnd { value: 0 }, b'\n') => Self::LastEnd,
            (Self::SizeEnd { value }, b'\n') => Self::Data { left: value },
            (Self::Data { mut left }, _) => {
                taken = take(&mut left, bytes.len());
                if left == 0 { Self::DataEnd } else { Self::Data { left } }
            }
            (Self::DataEnd, b'\r') => Self::DataEndLf,
            (Self::DataEndLf, b'\n') => Self::Size { value: 0, digits: 0 },
            (Self::LastEnd, b'\r') => Self::LastEndLf,
            (Self::LastEndLf, b'\n') => Self::Done,
            _ => return Err(WRONG),
        };
        Ok(taken)
    }
}

/// Takes up to `count` of what is left.
fn take(left: &mut u64, count: usize) -> usize {
    // What does not fit into a `usize` is more than `count` in any case.
    let taken = usize::try_from(*left).map_or(count, |left| left.min(count));
    *left = left.saturating_sub(taken as u64);
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mut body: Body, bytes: &str, taken: usize, refusal: Option<Refusal>) {
        assert_eq!(body.accept(bytes.as_bytes()), (taken, refusal), "{bytes:?}");
    }

    const WRONG: Option<Refusal> = Some(Refusal::Malformed("a chunk of the body"));

    #[test]
    fn a_body_of_known_length_ends_there() {
        check(Body::Length(5), "hello", 5, None);
        check(Body::Length(5), "hel", 3, None);
        check(Body::Length(5), "helloGET", 5, Some(Refusal::Second));
        check(Body::NONE, "G", 0, Some(Refusal::Second));
        check(Body::NONE, "", 0, None);
    }

    #[test]
    fn a_chunked_body_ends_with_its_empty_chunk() {
        check(Body::CHUNKED, "5\r\nhello\r\n0\r\n\r\n", 15, None);
        check(Body::CHUNKED, "00A\r\n0123456789\r\n0\r\n\r\n", 22, None);
        check(Body::CHUNKED, "0\r\n\r\nGET / HTTP/1.1\r\n", 5, Some(Refusal::Second));
    }

    #[test]
    fn a_chunk_that_programs_could_read_in_two_ways_is_refused() {
        check(Body::CHUNKED, "5;ext=1\r\nhello", 1, WRONG);
        check(Body::CHUNKED, "5\nhello", 1, WRONG);
        check(Body::CHUNKED, "5 \r\nhello", 1, WRONG);
        check(Body::CHUNKED, "+5\r\nhello", 0, WRONG);
        check(Body::CHUNKED, "0x5\r\nhello", 1, WRONG);
        check(Body::CHUNKED, "\r\n", 0, WRONG);
        check(Body::CHUNKED, "5\r\nhelloX", 8, WRONG);
        check(Body::CHUNKED, "0\r\nTrailer: x\r\n\r\n", 3, WRONG);
        check(Body::CHUNKED, "0000000000000000005\r\n", 15, WRONG);
        check(Body::CHUNKED, "ffffffffffffffff\r\n", 15, WRONG);
    }

    proptest::proptest! {
        #[test]
        fn any_split_of_a_body_gives_the_same_answer(
            bytes in "[0-9a-f]{0,2}(\r\n|x|;){0,2}[a-z]{0,16}\r\n(0\r\n\r\n)?.{0,4}",
            at in 0_usize..40,
        ) {
            let bytes = bytes.as_bytes();
            let at = at.min(bytes.len());
            let mut whole = Body::CHUNKED;
            let expected = whole.accept(bytes);
            let mut parts = Body::CHUNKED;
            let (first, refusal) = parts.accept(&bytes[..at]);
            let given = if refusal.is_some() { (first, refusal) } else {
                let (second, refusal) = parts.accept(&bytes[at..]);
                (first + second, refusal)
            };
            proptest::prop_assert_eq!(given, expected);
        }
    }
}
