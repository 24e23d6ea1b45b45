//! SHA-256 digests: the only hash that is trusted here; git's own names for objects are git's.

#[cfg(target_arch = "x86_64")]
mod lanes;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::block_api::compress256;
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest. Its text form is always 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// Why a text is not a digest.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a digest is 64 lower-case hexadecimal digits")]
pub struct DigestError;

impl Digest {
    /// What stands before the first entry of a chain: 32 zero bytes.
    pub const GENESIS: Self = Self([0; 32]);

    /// The digest of `bytes`. They lie in one piece, so the end is padded here: a tenth quicker than
    /// by way of [`Hasher`], which keeps a buffer for pieces.
    pub fn of(bytes: &[u8]) -> Self {
        let mut state = INITIAL;
        let (whole, rest) = bytes.as_chunks();
        compress256(&mut state, whole);
        let mut last = [[0; BLOCK]; 2];
        compress256(&mut state, pad(&mut last, rest, bytes.len()));
        Self::from_state(&state)
    }

    /// The digests of many messages, in their order; sixteen at a time where the processor can, which
    /// takes less than half the time. Best with messages of about the same length.
    pub fn of_each(messages: &[&[u8]]) -> Vec<Self> {
        #[cfg(target_arch = "x86_64")]
        if let Some(states) = lanes::states(messages) {
            return states.iter().map(Self::from_state).collect();
        }
        messages.iter().map(|message| Self::of(message)).collect()
    }

    fn from_state(state: &State) -> Self {
        let mut digest = [0; 32];
        for (bytes, word) in digest.as_chunks_mut().0.iter_mut().zip(state) {
            *bytes = word.to_be_bytes();
        }
        Self(digest)
    }

    /// The digest of the parts one after another, without copying them together.
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut hasher = Hasher::default();
        for part in parts {
            hasher.update(part);
        }
        hasher.finish()
    }

    /// A digest that was computed elsewhere.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The 64 hexadecimal digits, without allocating.
    pub fn hex(&self) -> [u8; 64] {
        let mut out = [0; 64];
        for (pair, byte) in out.chunks_exact_mut(2).zip(self.0) {
            if let [high, low] = pair {
                *high = nibble(byte >> 4);
                *low = nibble(byte & 15);
            }
        }
        out
    }
}

/// Bytes that SHA-256 takes at once.
const BLOCK: usize = 64;

/// SHA-256 between two blocks.
type State = [u32; 8];

/// SHA-256 before the first block.
const INITIAL: State = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// Writes the end of a message of `length` bytes into `last`: its `rest`, a one bit, zeros and the
/// length in bits. Gives the blocks that it takes.
fn pad<'a>(last: &'a mut [[u8; BLOCK]; 2], rest: &[u8], length: usize) -> &'a [[u8; BLOCK]] {
    let blocks = if rest.len() < BLOCK - size_of::<u64>() { 1 } else { 2 };
    let Some(used) = last.get_mut(..blocks) else { return &[] };
    let bytes = used.as_flattened_mut();
    if let Some((text, [bit, ..])) = bytes.split_at_mut_checked(rest.len()) {
        text.copy_from_slice(rest);
        *bit = 0x80;
    }
    if let Some(bits) = bytes.last_chunk_mut() {
        *bits = (length as u64 * 8).to_be_bytes();
    }
    used
}

/// Computes a digest of bytes that come one piece after another.
#[derive(Clone, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all bytes added.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hasher")
    }
}

/// Arithmetic instead of a table: three times as quick, and every entry has several hashes.
const fn nibble(value: u8) -> u8 {
    value + if value < 10 { b'0' } else { b'a' - 10 }
}

fn value_of(digit: u8) -> Result<u8, DigestError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(DigestError),
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&String::from_utf8_lossy(&self.hex()))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let digits: &[u8; 64] = text.as_bytes().try_into().map_err(|_| DigestError)?;
        let mut out = [0; 32];
        for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
            if let [high, low] = pair {
                *byte = value_of(*high)? << 4 | value_of(*low)?;
            }
        }
        Ok(Self(out))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = Digest;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("64 lower-case hexadecimal digits")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Digest, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_abc_is_the_published_one() {
        let published = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Digest::of(b"abc").to_string(), published);
        assert_eq!(Digest::of_parts(&[b"a", b"", b"bc"]).to_string(), published);
        assert_eq!(published.parse(), Ok(Digest::of(b"abc")));
    }

    #[test]
    fn a_digest_of_any_length_is_the_one_of_its_pieces() {
        let bytes: Vec<u8> = (0..400_u32).map(|n| (n * 31 % 251) as u8).collect();
        for length in 0..bytes.len() {
            let whole = &bytes[..length];
            assert_eq!(Digest::of(whole), Digest::of_parts(&[whole]), "{length}");
        }
    }

    #[test]
    fn digests_of_many_are_those_of_each() {
        let bytes: Vec<u8> = (0..2000_u32).map(|n| (n * 31 % 251) as u8).collect();
        let lengths = [0, 1, 55, 56, 63, 64, 65, 119, 120, 128, 700, 1999];
        for count in 0..70 {
            for mix in 0..4 {
                let length = |n: usize| lengths[(n * (mix * 2 + 1) + n / 5 * mix) % lengths.len()];
                let messages: Vec<&[u8]> =
                    (0..count).map(|n| &bytes[n % 7..][..length(n).min(1990)]).collect();
                let expected: Vec<_> = messages.iter().map(|m| Digest::of_parts(&[m])).collect();
                assert_eq!(Digest::of_each(&messages), expected, "{count} {mix}");
            }
        }
    }

    #[test]
    fn a_digest_has_one_spelling() {
        let text = Digest::of(b"abc").to_string();
        assert_eq!(text.to_uppercase().parse::<Digest>(), Err(DigestError));
        assert_eq!(format!(" {text}").parse::<Digest>(), Err(DigestError));
        assert_eq!(text[..63].parse::<Digest>(), Err(DigestError));
    }
}
