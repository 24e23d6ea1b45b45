//! Signed notes, and checkpoints as one kind of them.
//!
//! A note is a text with signature lines under it (<https://c2sp.org/signed-note>):
//!
//! ```text
//! example.com/ledger
//! 20852163
//! CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=
//!
//! — fluffy-ledger Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeO…
//! ```
//!
//! This one is a checkpoint (<https://c2sp.org/tlog-checkpoint>): origin, size and root of a tree.
//! Everything signed with a ledger's key is a note, and the first line of its body says of what kind,
//! so that no note can pass for one of another kind.
//!
//! **Invariant.** Nothing is read out of a note except by [`Note::verify`] with a key: there is no way
//! to ask an unverified note what it says.
//!
//! **Invariant.** What is accepted has one spelling: a note signed by one key, changed in any byte,
//! is refused. Lines of other keys prove nothing and are not looked at beyond their form.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fluffy_base::Digest;

use crate::key::{KeyName, SigningKey, VerifyingKey};

/// The largest note that is read or written, in bytes.
pub(crate) const MAX_NOTE: usize = 64 * 1024;

const SIGNATURE_MARK: &str = "— ";

/// Why a text is not a note, or not one of the wanted key.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NoteError {
    /// Longer than 64 KiB.
    #[error("a note has at most {MAX_NOTE} bytes, not {0}")]
    TooLarge(usize),
    /// Anything but line feeds below the printable characters.
    #[error("a note has no control characters but line feeds")]
    ControlCharacter,
    /// The text to be signed does not end a line.
    #[error("the text of a note ends with a line feed")]
    OpenBody,
    /// No empty line divides the text from the signatures.
    #[error("a note has an empty line between its text and its signatures")]
    NoDivider,
    /// The text is followed by no signature.
    #[error("the note has no signature")]
    NoSignature,
    /// The last signature line has no end, or something follows it.
    #[error("the note does not end with a whole signature line")]
    OpenEnd,
    /// A line among the signatures is none.
    #[error("signature line {0} is not of the form `— <name> <base64>`")]
    SignatureLine(usize),
    /// No line is by the wanted key.
    #[error("the note is not signed by `{0}`")]
    NotSigned(String),
    /// A line claims to be by the wanted key and is not, or not over this text.
    #[error("the signature of `{0}` is not valid")]
    BadSignature(String),
}

/// A well-formed note of which nothing has been verified.
#[derive(Debug, Clone)]
pub(crate) struct Note<'a> {
    body: &'a str,
    signatures: Vec<SignatureLine<'a>>,
}

#[derive(Debug, Clone)]
struct SignatureLine<'a> {
    name: &'a str,
    key_id: [u8; 4],
    signature: Vec<u8>,
}

/// The note with `body` as its text, signed by `key`. The body ends with a line feed.
pub(crate) fn sign_note(body: &str, key: &SigningKey) -> Result<String, NoteError> {
    if !body.ends_with('\n') {
        return Err(NoteError::OpenBody);
    }
    checked(format!("{body}\n{}", signature_line(body, key)))
}

/// The note with one more signature under it. The others are not verified.
pub(crate) fn cosign_note(note: &str, key: &SigningKey) -> Result<String, NoteError> {
    let body = Note::parse(note)?.body;
    checked(format!("{note}{}", signature_line(body, key)))
}

/// The text of a note, if it is signed by `key`.
pub(crate) fn open_note<'a>(note: &'a str, key: &VerifyingKey) -> Result<&'a str, NoteError> {
    Note::parse(note)?.verify(key)
}

impl<'a> Note<'a> {
    /// Reads the form of a note, strictly.
    pub(crate) fn parse(text: &'a str) -> Result<Self, NoteError> {
        if text.len() > MAX_NOTE {
            return Err(NoteError::TooLarge(text.len()));
        }
        if text.chars().any(|c| c.is_control() && c != '\n') {
            return Err(NoteError::ControlCharacter);
        }
        let divider = text.rfind("\n\n").ok_or(NoteError::NoDivider)?;
        let (body, rest) = text.split_at_checked(divider + 1).ok_or(NoteError::NoDivider)?;
        let lines = rest.strip_prefix('\n').ok_or(NoteError::NoDivider)?;
        if lines.is_empty() {
            return Err(NoteError::NoSignature);
        }
        let lines = lines.strip_suffix('\n').ok_or(NoteError::OpenEnd)?;
        let numbered = (1..).zip(lines.split('\n'));
        let signatures = numbered
            .map(|(number, line)| {
                SignatureLine::parse(line).ok_or(NoteError::SignatureLine(number))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { body, signatures })
    }

    /// The text, if `key` has signed it. Lines of other keys are passed over; of those that name this
    /// key, all must be valid.
    pub(crate) fn verify(&self, key: &VerifyingKey) -> Result<&'a str, NoteError> {
        let mut signed = false;
        for line in self.signatures.iter().filter(|line| line.is_by(key)) {
            if !key.has_signed(self.body.as_bytes(), &line.signature) {
                return Err(NoteError::BadSignature(key.to_string()));
            }
            signed = true;
        }
        if signed { Ok(self.body) } else { Err(NoteError::NotSigned(key.to_string())) }
    }
}

impl<'a> SignatureLine<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (name, encoded) = line.strip_prefix(SIGNATURE_MARK)?.split_once(' ')?;
        if !KeyName::is_valid(name) {
            return None;
        }
        let bytes = STANDARD.decode(encoded).ok()?;
        let (key_id, signature) = bytes.split_first_chunk()?;
        if signature.is_empty() {
            return None;
        }
        Some(Self { name, key_id: *key_id, signature: signature.to_vec() })
    }

    fn is_by(&self, key: &VerifyingKey) -> bool {
        self.name == key.name().as_str() && self.key_id == key.id()
    }
}

fn signature_line(body: &str, key: &SigningKey) -> String {
    let public = key.verifying_key();
    let bytes = [&public.id()[..], &key.sign(body.as_bytes())].concat();
    format!("{SIGNATURE_MARK}{} {}\n", public.name(), STANDARD.encode(bytes))
}

/// What is written can be read.
fn checked(note: String) -> Result<String, NoteError> {
    Note::parse(&note)?;
    Ok(note)
}

/// What a ledger was at some moment: how long, and with which content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Names the ledger; one line, not empty.
    pub origin: String,
    /// How many entries it had.
    pub size: u64,
    /// The root of the tree over them.
    pub root: Digest,
}

/// Why a text is not a checkpoint, or not one of the wanted key.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CheckpointError {
    /// It is not a note, or not a note of the wanted key.
    #[error(transparent)]
    Note(#[from] NoteError),
    /// More or fewer lines. Extension lines are not understood, so they are refused.
    #[error("a checkpoint has three lines: origin, size and root")]
    Lines,
    /// The origin is empty.
    #[error("the origin of a checkpoint is not empty")]
    Origin,
    /// The size is not a number in its one spelling.
    #[error("the size of a checkpoint is a decimal number below 2^64 without leading zeros")]
    Size,
    /// The root is not a digest in its one spelling.
    #[error("the root of a checkpoint is 32 bytes in base64")]
    Root,
}

impl Checkpoint {
    /// The checkpoint as a note signed by `key`.
    pub fn sign(&self, key: &SigningKey) -> Result<String, CheckpointError> {
        let root = STANDARD.encode(self.root.as_bytes());
        let body = format!("{}\n{}\n{root}\n", self.origin, self.size);
        Self::from_body(&body)?;
        Ok(sign_note(&body, key)?)
    }

    fn from_body(body: &str) -> Result<Self, CheckpointError> {
        let lines: Vec<&str> = body.split('\n').collect();
        let [origin, size, root, ""] = lines.as_slice() else {
            return Err(CheckpointError::Lines);
        };
        if origin.is_empty() {
            return Err(CheckpointError::Origin);
        }
        Ok(Self { origin: (*origin).to_owned(), size: parse_size(size)?, root: parse_root(root)? })
    }
}

fn parse_size(text: &str) -> Result<u64, CheckpointError> {
    let size: u64 = text.parse().map_err(|_| CheckpointError::Size)?;
    if size.to_string() == text { Ok(size) } else { Err(CheckpointError::Size) }
}

fn parse_root(text: &str) -> Result<Digest, CheckpointError> {
    let bytes = STANDARD.decode(text).map_err(|_| CheckpointError::Root)?;
    let bytes = <[u8; 32]>::try_from(bytes).map_err(|_| CheckpointError::Root)?;
    Ok(Digest::from_bytes(bytes))
}

/// A well-formed checkpoint with its signatures, none of them verified.
#[derive(Debug, Clone)]
pub struct SignedCheckpoint<'a> {
    claim: Checkpoint,
    note: Note<'a>,
}

impl<'a> SignedCheckpoint<'a> {
    /// Reads the form of a signed checkpoint, strictly.
    pub fn parse(text: &'a str) -> Result<Self, CheckpointError> {
        let note = Note::parse(text)?;
        let claim = Checkpoint::from_body(note.body)?;
        Ok(Self { claim, note })
    }

    /// The checkpoint, if `key` has signed it. Whether its origin is the wanted one is for the caller
    /// to compare.
    pub fn verify(&self, key: &VerifyingKey) -> Result<Checkpoint, CheckpointError> {
        self.note.verify(key)?;
        Ok(self.claim.clone())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: &str = "fluffy-ledger+434c3a91+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4";

    /// Made with Python's `cryptography`, from the seed 00 01 … 1f.
    const SIGNED: &str = "example.com/ledger\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n\
        — fluffy-ledger Q0w6kXsx4xtc00UezaxVolDaafT+vRA0WwvjGE8j2+oY8gBaLcSn87w+1tyiREbyJ8eNlQZINcLqPnkB3qW8RXGkSg8=\n";

    fn key(byte: u8) -> SigningKey {
        SigningKey::from_seed(KeyName::LEDGER, &[byte; 32])
    }

    fn vector_key() -> SigningKey {
        SigningKey::from_seed(KeyName::LEDGER, &std::array::from_fn(|i| i as u8))
    }

    fn checkpoint(size: u64) -> Checkpoint {
        Checkpoint {
            origin: "example.com/ledger".to_owned(),
            size,
            root: Digest::of(&size.to_be_bytes()),
        }
    }

    fn refused(text: &str) -> CheckpointError {
        SignedCheckpoint::parse(text).unwrap_err()
    }

    #[test]
    fn a_checkpoint_is_signed_to_the_bytes_that_python_gives() {
        let empty = Checkpoint { root: Digest::of(b""), ..checkpoint(0) };
        assert_eq!(empty.sign(&vector_key()).as_deref(), Ok(SIGNED));
        let parsed = SignedCheckpoint::parse(SIGNED).unwrap();
        assert_eq!(parsed.verify(&KEY.parse().unwrap()), Ok(empty));
    }

    #[test]
    fn the_published_note_of_the_go_project_is_opened() {
        let key = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
        let body = "If you think cryptography is the answer to your problem,\n\
            then you don't know what your problem is.\n";
        let note = format!(
            "{body}\n— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
        );
        assert_eq!(open_note(&note, &key.parse().unwrap()), Ok(body));
    }

    #[test]
    fn a_foreign_key_is_refused() {
        let foreign = key(1).verifying_key().clone();
        let error = open_note(SIGNED, &foreign).unwrap_err();
        assert_eq!(error, NoteError::NotSigned(foreign.to_string()));
    }

    #[test]
    fn the_same_key_under_another_name_is_another_key() {
        let seed = std::array::from_fn(|i| i as u8);
        let other = SigningKey::from_seed(KeyName::new("witness").unwrap(), &seed);
        assert!(matches!(open_note(SIGNED, other.verifying_key()), Err(NoteError::NotSigned(_))));
    }

    #[test]
    fn the_right_key_among_several_is_accepted() {
        let mut note = checkpoint(7).sign(&key(1)).unwrap();
        note = cosign_note(&note, &key(2)).unwrap();
        // A witness of another algorithm: its signature is longer and cannot be checked here.
        note.push_str(&format!("— witness.example/w {}\n", STANDARD.encode([9; 76])));
        note = cosign_note(&note, &key(3)).unwrap();
        let parsed = SignedCheckpoint::parse(&note).unwrap();
        for byte in 1..=3 {
            assert_eq!(parsed.verify(key(byte).verifying_key()), Ok(checkpoint(7)));
        }
        let none = NoteError::NotSigned(key(4).verifying_key().to_string());
        assert_eq!(parsed.verify(key(4).verifying_key()), Err(none.into()));
    }

    #[test]
    fn one_bad_line_of_the_wanted_key_spoils_the_note() {
        let good = checkpoint(7).sign(&key(1)).unwrap();
        let other = checkpoint(8).sign(&key(1)).unwrap();
        let stolen = other.lines().last().unwrap();
        let bad = NoteError::BadSignature(key(1).verifying_key().to_string());
        let both = format!("{good}{stolen}\n");
        assert_eq!(open_note(&both, key(1).verifying_key()), Err(bad));
    }

    #[test]
    fn a_signature_is_good_for_one_text_only() {
        let (body, _) = SIGNED.split_once("\n\n").unwrap();
        let forged = SIGNED.replace(body, &body.replace("\n0\n", "\n1\n"));
        let error = SignedCheckpoint::parse(&forged).unwrap().verify(&KEY.parse().unwrap());
        assert_eq!(error, Err(NoteError::BadSignature(KEY.to_owned()).into()));
    }

    #[test]
    fn a_note_is_read_in_one_form_only() {
        let signature = SIGNED.rsplit("\n\n").next().unwrap();
        let check = |text: &str, error: NoteError| {
            assert_eq!(Note::parse(text).unwrap_err(), error, "{text:?}");
        };
        check("", NoteError::NoDivider);
        check("text\n", NoteError::NoDivider);
        check("text\n\n", NoteError::NoSignature);
        check(signature, NoteError::NoDivider);
        check(&format!("\n{signature}"), NoteError::NoDivider);
        check(SIGNED.trim_end(), NoteError::OpenEnd);
        check(&format!("{SIGNED}x"), NoteError::OpenEnd);
        check(&format!("{SIGNED}\n"), NoteError::NoSignature);
        check(&format!("{SIGNED}x\n"), NoteError::SignatureLine(2));
        check(&SIGNED.replace('\n', "\r\n"), NoteError::ControlCharacter);
        for control in ['\0', '\t', '\r', '\u{7f}', '\u{85}'] {
            check(&format!("{control}{SIGNED}"), NoteError::ControlCharacter);
        }
        let long = format!("{}\n\n{signature}", "x".repeat(MAX_NOTE));
        check(&long, NoteError::TooLarge(long.len()));
        let many = signature.repeat(400);
        assert!(Note::parse(&format!("text\n\n{many}")).is_ok());
    }

    #[test]
    fn a_signature_line_is_read_in_one_form_only() {
        let good = SIGNED.lines().last().unwrap();
        let (start, encoded) = good.rsplit_once(' ').unwrap();
        let check = |line: &str| {
            let error = Note::parse(&format!("text\n\n{line}\n")).unwrap_err();
            assert_eq!(error, NoteError::SignatureLine(1), "{line}");
        };
        check("-- fluffy-ledger AAAA");
        check(&good.replace("— ", "—"));
        check(&good.replace("— ", "—  "));
        check(&good.replace("— fluffy", "— flu+ffy"));
        check(&good.replace("— fluffy", "— flu\u{a0}ffy"));
        check(&good.replace("fluffy-ledger ", ""));
        check(&format!("{good} "));
        check(&format!("{good} more"));
        check(good.trim_end_matches('='));
        check(&format!("{start} {}", STANDARD.encode([0; 4])));
        // Other bits in what the padding leaves unused.
        check(&format!("{start} {}9=", encoded.strip_suffix("8=").unwrap()));
        check(&format!("{start} {}", encoded.replace('+', "-")));
    }

    #[test]
    fn the_text_of_a_note_may_have_empty_lines() {
        for body in ["\n", "a\n\nb\n", "a\n\n\n", "— not a signature\n"] {
            let note = sign_note(body, &key(1)).unwrap();
            assert_eq!(open_note(&note, key(1).verifying_key()), Ok(body));
        }
    }

    #[test]
    fn what_could_not_be_read_is_not_signed() {
        assert_eq!(sign_note("", &key(1)), Err(NoteError::OpenBody));
        assert_eq!(sign_note("text", &key(1)), Err(NoteError::OpenBody));
        assert_eq!(sign_note("te\rxt\n", &key(1)), Err(NoteError::ControlCharacter));
        let long = format!("{}\n", "x".repeat(MAX_NOTE));
        assert!(matches!(sign_note(&long, &key(1)), Err(NoteError::TooLarge(_))));
        let with_origin =
            |origin: &str| Checkpoint { origin: origin.to_owned(), ..checkpoint(1) }.sign(&key(1));
        assert_eq!(with_origin(""), Err(CheckpointError::Origin));
        assert_eq!(with_origin("two\nlines"), Err(CheckpointError::Lines));
        assert_eq!(with_origin("tab\t"), Err(NoteError::ControlCharacter.into()));
    }

    #[test]
    fn a_checkpoint_is_read_in_one_form_only() {
        let root = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
        let check = |body: &str, error: CheckpointError| {
            assert_eq!(refused(&sign_note(body, &key(1)).unwrap()), error, "{body:?}");
        };
        for size in ["", "00", "01", "+1", "-1", " 1", "1 ", "1e3", "18446744073709551616", "１"] {
            check(&format!("origin\n{size}\n{root}\n"), CheckpointError::Size);
        }
        check(&format!("\n1\n{root}\n"), CheckpointError::Origin);
        check("origin\n1\n", CheckpointError::Lines);
        check(&format!("origin\n1\n{root}\nextension\n"), CheckpointError::Lines);
        check(&format!("origin\n1\n{root}\n\n"), CheckpointError::Lines);
        for root in
            ["", "47DEQpj8", &root.replace("FU=", "FV="), &root.replace('=', ""), &root[1..]]
        {
            check(&format!("origin\n1\n{root}\n"), CheckpointError::Root);
        }
        let largest = checkpoint(u64::MAX).sign(&key(1)).unwrap();
        let parsed = SignedCheckpoint::parse(&largest).unwrap();
        assert_eq!(parsed.verify(key(1).verifying_key()), Ok(checkpoint(u64::MAX)));
        assert_eq!(refused("nothing"), NoteError::NoDivider.into());
    }

    #[test]
    fn every_byte_removed_or_doubled_is_noticed() {
        let key: VerifyingKey = KEY.parse().unwrap();
        for at in 0..SIGNED.len() {
            let (before, after) = SIGNED.as_bytes().split_at(at);
            let removed = [before, &after[1..]].concat();
            let doubled = [before, &after[..1], after].concat();
            for bytes in [removed, doubled] {
                let opened = str::from_utf8(&bytes).is_ok_and(|text| open_note(text, &key).is_ok());
                assert!(!opened, "byte {at}");
            }
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let key: VerifyingKey = KEY.parse().unwrap();
        for bit in 0..SIGNED.len() * 8 {
            let mut bytes = SIGNED.as_bytes().to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let opened = str::from_utf8(&bytes).is_ok_and(|text| open_note(text, &key).is_ok());
            assert!(!opened, "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn any_other_byte_anywhere_is_noticed(
            size in any::<u64>(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
        ) {
            let note = checkpoint(size).sign(&key(1)).unwrap();
            let mut bytes = note.into_bytes();
            let at = at.index(bytes.len());
            prop_assume!(bytes[at] != byte);
            bytes[at] = byte;
            let opened = str::from_utf8(&bytes)
                .is_ok_and(|text| open_note(text, key(1).verifying_key()).is_ok());
            prop_assert!(!opened);
        }

        #[test]
        fn any_text_is_read_or_refused_without_panic(text in "(?s).{0,200}") {
            let _ = SignedCheckpoint::parse(&text);
            let signed_by_nobody = format!("{text}\n\n— a AAAAAAA=\n");
            prop_assert!(open_note(&signed_by_nobody, key(1).verifying_key()).is_err());
        }

        #[test]
        fn a_signed_text_is_read_back(body in "[^\\p{Cc}]{0,80}(\n[^\\p{Cc}]{0,80}){0,4}") {
            let body = format!("{body}\n");
            let note = sign_note(&body, &key(1)).unwrap();
            prop_assert_eq!(open_note(&note, key(1).verifying_key()), Ok(&body[..]));
        }
    }
}
