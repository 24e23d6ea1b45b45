//! Messages on a stream of bytes: a length of four bytes, big-endian, and so many bytes of payload.
//!
//! Nothing here looks into a payload or reads a socket. [`FrameDecoder::next_frame`] takes bytes off
//! the caller's slice up to the end of one frame and leaves the rest where it is.
//!
//! **Invariant.** A decoder holds at most one unfinished frame, and no more of it than has arrived
//! (doubled at most, never above the limit). A frame over the limit is refused at its header. Each
//! byte is copied a bounded number of times, however the stream is cut up.

use std::mem;

const HEADER: usize = 4;

/// Why there is no frame.
#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
pub enum FrameError {
    /// The payload is larger than was agreed.
    #[error("frame of {size} bytes is over the limit of {limit}")]
    TooLarge {
        /// The payload's bytes.
        size: usize,
        /// How many would have been taken.
        limit: usize,
    },
    /// The payload has no bytes; there is no message that short.
    #[error("frame is empty")]
    Empty,
    /// The stream ended inside a frame.
    #[error("stream ends inside a frame")]
    Truncated,
}

/// The frame that carries `payload`; `limit` is the receiver's.
pub fn encode_frame(payload: &[u8], limit: usize) -> Result<Vec<u8>, FrameError> {
    let size = checked_size(payload.len(), limit)?;
    let header = u32::try_from(size)
        .map_err(|_| FrameError::TooLarge { size, limit: u32::MAX as usize })?
        .to_be_bytes();
    Ok([header.as_slice(), payload].concat())
}

/// Cuts a stream of bytes into the payloads of its frames.
///
/// After the first refused frame the stream has no meaning any more: every further call gives the
/// same error.
pub struct FrameDecoder {
    limit: usize,
    reading: Reading,
}

enum Reading {
    Header(Vec<u8>),
    Payload { size: usize, bytes: Vec<u8> },
    Refused(FrameError),
}

impl FrameDecoder {
    /// A decoder for payloads of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, reading: Reading::Header(Vec::new()) }
    }

    /// The next payload, or nothing once `input` is used up. Call it until it gives nothing:
    ///
    /// ```
    /// # use fluffy_base::{FrameDecoder, FrameError};
    /// # fn act_on(_: Vec<u8>) {}
    /// fn received(decoder: &mut FrameDecoder, mut input: &[u8]) -> Result<(), FrameError> {
    ///     while let Some(payload) = decoder.next_frame(&mut input)? {
    ///         act_on(payload);
    ///     }
    ///     Ok(())
    /// }
    /// # received(&mut FrameDecoder::new(9), &[0, 0, 0, 1, 7]).unwrap();
    /// ```
    pub fn next_frame(&mut self, input: &mut &[u8]) -> Result<Option<Vec<u8>>, FrameError> {
        loop {
            match &mut self.reading {
                Reading::Header(header) => {
                    fill(header, HEADER, input);
                    let Some(header) = header.first_chunk() else {
                        return Ok(None);
                    };
                    let size = usize::try_from(u32::from_be_bytes(*header)).unwrap_or(usize::MAX);
                    self.reading = match checked_size(size, self.limit) {
                        Ok(size) => Reading::Payload { size, bytes: Vec::new() },
                        Err(error) => Reading::Refused(error),
                    };
                }
                Reading::Payload { size, bytes } => {
                    fill(bytes, *size, input);
                    if bytes.len() < *size {
                        return Ok(None);
                    }
                    let payload = mem::take(bytes);
                    self.reading = Reading::Header(Vec::new());
                    return Ok(Some(payload));
                }
                Reading::Refused(error) => return Err(*error),
            }
        }
    }

    /// How many bytes of memory the unfinished frame takes.
    pub fn held(&self) -> usize {
        match &self.reading {
            Reading::Header(bytes) | Reading::Payload { bytes, .. } => bytes.capacity(),
            Reading::Refused(_) => 0,
        }
    }

    /// Whether the stream may end here, between two frames.
    pub fn finish(&self) -> Result<(), FrameError> {
        match &self.reading {
            Reading::Header(header) if header.is_empty() => Ok(()),
            Reading::Header(_) | Reading::Payload { .. } => Err(FrameError::Truncated),
            Reading::Refused(error) => Err(*error),
        }
    }
}

fn checked_size(size: usize, limit: usize) -> Result<usize, FrameError> {
    match size {
        0 => Err(FrameError::Empty),
        _ if size > limit => Err(FrameError::TooLarge { size, limit }),
        _ => Ok(size),
    }
}

/// Moves bytes from `input` until `buffer` has `size` of them or there are no more.
///
/// The buffer grows by doubling, as `Vec` does by itself, but never beyond `size`.
fn fill(buffer: &mut Vec<u8>, size: usize, input: &mut &[u8]) {
    let missing = size.saturating_sub(buffer.len());
    let (taken, rest) = input.split_at_checked(missing).unwrap_or((*input, &[]));
    let needed = buffer.len() + taken.len();
    if needed > buffer.capacity() {
        let room = needed.max(buffer.capacity().saturating_mul(2)).min(size);
        buffer.reserve_exact(room - buffer.len());
    }
    buffer.extend_from_slice(taken);
    *input = rest;
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 4 << 20;

    #[test]
    fn lesson_l18_four_mebibytes_fed_byte_by_byte_are_copied_a_few_times_not_millions() {
        let frame = encode_frame(&vec![7; LIMIT], LIMIT).unwrap();
        let mut decoder = FrameDecoder::new(LIMIT);
        let (mut copied, mut room) = (0, 0);
        let mut payloads = Vec::new();
        for byte in frame.chunks(1) {
            let mut input = byte;
            payloads.extend(decoder.next_frame(&mut input).unwrap());
            assert!(input.is_empty());
            copied += 1;
            if let Reading::Payload { bytes, .. } = &decoder.reading
                && bytes.capacity() != room
            {
                room = bytes.capacity();
                copied += bytes.len();
            }
        }
        assert_eq!(payloads, [vec![7; LIMIT]]);
        assert!(copied <= 3 * frame.len(), "{copied}");
        assert!(room <= LIMIT, "{room}");
    }

    #[test]
    fn a_header_alone_reserves_no_memory() {
        let mut decoder = FrameDecoder::new(LIMIT);
        assert_eq!(decoder.next_frame(&mut [0, 0x40, 0, 0].as_slice()), Ok(None));
        assert!(matches!(decoder.reading, Reading::Payload { bytes, .. } if bytes.capacity() == 0));
    }

    #[test]
    fn a_decoder_never_has_room_for_more_than_its_limit() {
        let frame = encode_frame(&[7; 1000], 1000).unwrap();
        for cut in 1..frame.len() {
            let mut decoder = FrameDecoder::new(1000);
            for mut part in frame.chunks(cut) {
                decoder.next_frame(&mut part).unwrap();
                if let Reading::Payload { bytes, .. } = &decoder.reading {
                    assert!(bytes.capacity() <= 1000);
                }
            }
        }
    }
}
