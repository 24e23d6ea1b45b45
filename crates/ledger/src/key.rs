//! The key that signs for a ledger: its file, its text form and its rotation.
//!
//! The key is the user's. Its seed is in a file that only the user can read, one line:
//! `fluffy-key-v1 ed25519 <base64 seed>`. [`SigningKey::load`] refuses a file that anyone else could
//! have read or put there. Others know a key by its text form, `<name>+<key id>+<base64>`, as in
//! <https://c2sp.org/signed-note>.
//!
//! **Invariant.** A seed is never printed, and wiped from memory when its key is dropped.
//!
//! **Invariant.** A file is judged by its open descriptor, never by its name: what was checked is what
//! is read.

use std::borrow::Cow;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::Signer as _;
use fluffy_base::Digest;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use zeroize::Zeroizing;

use crate::LedgerError;
use crate::checkpoint::{Note, NoteError, cosign_note, sign_note};
use crate::files::{self, Durability};

const FILE_START: &str = "fluffy-key-v1 ed25519 ";
const FILE_LENGTH: u64 = 22 + 44 + 1;
const ROTATION_START: &str = "fluffy-key-rotation-v1";
const ED25519: u8 = 0x01;

/// The name of a key: not empty, without white space, control characters or `+`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyName(Cow<'static, str>);

impl KeyName {
    /// The name of the keys that sign for a ledger.
    pub const LEDGER: Self = Self(Cow::Borrowed("fluffy-ledger"));

    /// The name, if it can be one.
    pub fn new(name: &str) -> Result<Self, KeyTextError> {
        if Self::is_valid(name) {
            Ok(Self(Cow::Owned(name.to_owned())))
        } else {
            Err(KeyTextError::Name)
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn is_valid(name: &str) -> bool {
        let forbidden = |c: char| c.is_whitespace() || c.is_control() || c == '+';
        !name.is_empty() && !name.contains(forbidden)
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A key that signs. Shown without its seed, and wiped when dropped.
pub struct SigningKey {
    secret: ed25519_dalek::SigningKey,
    public: VerifyingKey,
}

impl SigningKey {
    /// The key of a seed.
    pub fn from_seed(name: KeyName, seed: &[u8; 32]) -> Self {
        let secret = ed25519_dalek::SigningKey::from_bytes(seed);
        let public = VerifyingKey::of(name, secret.verifying_key());
        Self { secret, public }
    }

    /// The ledger's key in the file at `path`; `None` if there is no file.
    pub fn load(path: &Path) -> Result<Option<Self>, KeyError> {
        let Some(text) = read_private(path, FILE_LENGTH)? else {
            return Ok(None);
        };
        let seed = parse_file(&text).ok_or_else(|| KeyError::Malformed(path.to_owned()))?;
        Ok(Some(Self::from_seed(KeyName::LEDGER, &seed)))
    }

    /// Makes the ledger's key of `seed` and keeps it in a new file at `path`, which only the user can
    /// read. When this returns, the file survives a power cut. Its directory must exist.
    ///
    /// The seed must be 32 bytes of good randomness that are used for nothing else.
    pub fn create(path: &Path, seed: [u8; 32]) -> Result<Self, KeyError> {
        let seed = Zeroizing::new(seed);
        write_new(path, &seed).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => KeyError::Exists(path.to_owned()),
            _ => KeyError::Write { path: path.to_owned(), source },
        })?;
        Ok(Self::from_seed(KeyName::LEDGER, &seed))
    }

    /// Puts the ledger's key of `seed` in the place of the file at `path`. Interrupted anywhere, the
    /// old key or the new one is there.
    pub(crate) fn replace(path: &Path, seed: &[u8; 32]) -> Result<(), LedgerError> {
        files::replace(path, line(seed).as_bytes(), Durability::Synced)
    }

    /// What others need to check this key's signatures.
    pub fn verifying_key(&self) -> &VerifyingKey {
        &self.public
    }

    pub(crate) fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.secret.sign(message).to_bytes()
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({}, seed hidden)", self.public)
    }
}

/// A key that checks signatures. Its text form is `<name>+<8 hex digits of the id>+<base64>`.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifyingKey {
    name: KeyName,
    id: [u8; 4],
    point: ed25519_dalek::VerifyingKey,
}

/// Why a text is not a key.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum KeyTextError {
    /// Not three parts.
    #[error("a key has the form `<name>+<id>+<base64>`")]
    Form,
    /// The name cannot be one.
    #[error("the name of a key is not empty and has no white space, control character or `+`")]
    Name,
    /// The third part is not base64 in its one spelling.
    #[error("the last part of a key is base64")]
    Base64,
    /// A key of another algorithm, or of another length.
    #[error("only Ed25519 keys are supported")]
    Algorithm,
    /// No key, or one under which anything would verify.
    #[error("these bytes are no usable Ed25519 key")]
    Unusable,
    /// The id belongs to another name or key.
    #[error("the key's id should be `{expected}`")]
    Id {
        /// What follows from name and key.
        expected: String,
    },
}

impl VerifyingKey {
    fn of(name: KeyName, point: ed25519_dalek::VerifyingKey) -> Self {
        let parts = [name.as_str().as_bytes(), b"\n", &[ED25519], point.as_bytes()];
        let [a, b, c, d, ..] = *Digest::of_parts(&parts).as_bytes();
        Self { name, id: [a, b, c, d], point }
    }

    /// The name under which the key signs.
    pub fn name(&self) -> &KeyName {
        &self.name
    }

    /// Tells keys of one name apart. It is short: an identifier, not a proof.
    pub fn id(&self) -> [u8; 4] {
        self.id
    }

    /// Whether `signature` is this key's over `message`, by the strict rules: none of the second
    /// spellings that Ed25519 otherwise allows.
    pub(crate) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        ed25519_dalek::Signature::from_slice(signature)
            .is_ok_and(|signature| self.point.verify_strict(message, &signature).is_ok())
    }

    fn id_text(&self) -> String {
        format!("{:08x}", u32::from_be_bytes(self.id))
    }
}

impl fmt::Display for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = [&[ED25519], &self.point.as_bytes()[..]].concat();
        write!(f, "{}+{}+{}", self.name, self.id_text(), STANDARD.encode(bytes))
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifyingKey({self})")
    }
}

impl FromStr for VerifyingKey {
    type Err = KeyTextError;

    fn from_str(text: &str) -> Result<Self, KeyTextError> {
        let (name, rest) = text.split_once('+').ok_or(KeyTextError::Form)?;
        let (id, encoded) = rest.split_once('+').ok_or(KeyTextError::Form)?;
        let name = KeyName::new(name)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| KeyTextError::Base64)?;
        let Some((&ED25519, point)) = bytes.split_first() else {
            return Err(KeyTextError::Algorithm);
        };
        let point = point.try_into().map_err(|_| KeyTextError::Algorithm)?;
        let point =
            ed25519_dalek::VerifyingKey::from_bytes(point).map_err(|_| KeyTextError::Unusable)?;
        if point.is_weak() {
            return Err(KeyTextError::Unusable);
        }
        let key = Self::of(name, point);
        if key.id_text() != id {
            return Err(KeyTextError::Id { expected: key.id_text() });
        }
        Ok(key)
    }
}

/// Why a key's file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The name leads elsewhere.
    #[error("key file `{}` is a symbolic link; put the key file itself there", .0.display())]
    Symlink(PathBuf),
    /// A directory, pipe, socket or device.
    #[error("key file `{}` is not a regular file; move it away", .0.display())]
    NotRegular(PathBuf),
    /// Someone else's file: they know the key, or chose it.
    #[error(
        "key file `{}` belongs to user {owner}, not to user {user}; move it away and make a new key",
        path.display()
    )]
    ForeignOwner {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who we are.
        user: u32,
    },
    /// Others may read or write the file.
    #[error(
        "key file `{0}` is open to others (mode {mode:03o}); if nobody has read it, run `chmod 600 {0}`",
        path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The content is not a key.
    #[error(
        "key file `{}` is not one line `{FILE_START}<base64 seed>`; restore it, or move it away and \
         make a new key",
        .0.display()
    )]
    Malformed(PathBuf),
    /// A new key would take the place of another.
    #[error("key file `{}` exists already; move it away to make a new key", .0.display())]
    Exists(PathBuf),
    /// The file could not be read.
    #[error("key file `{}` cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file could not be written, or not made durable. If it is there, it may be incomplete.
    #[error("key file `{}` cannot be written", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// What a file holds that only the user can read, and one byte more than `limit` if there is too much;
/// `None` if there is no file. One that anyone else could have read or put there is refused.
pub fn read_private(path: &Path, limit: u64) -> Result<Option<Zeroizing<Vec<u8>>>, KeyError> {
    let Some(file) = open(path)? else {
        return Ok(None);
    };
    check_private(path, &file)?;
    // With room to spare: growing would leave a copy of the secret behind.
    let room = usize::try_from(limit).unwrap_or_default().saturating_add(64);
    let mut text = Zeroizing::new(Vec::with_capacity(room));
    file.take(limit.saturating_add(1))
        .read_to_end(&mut text)
        .map_err(|source| KeyError::Read { path: path.to_owned(), source })?;
    Ok(Some(text))
}

/// Puts a file that only the user can read in the place of what is at `path`, its directory made if need
/// be. Interrupted anywhere, the old file or the new one is there.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<(), LedgerError> {
    if let Some(directory) = path.parent() {
        files::make_dir(directory)?;
    }
    files::replace(path, bytes, Durability::Synced)
}

/// Removes such a file; one that is not there is fine.
pub fn remove_private(path: &Path) -> Result<(), LedgerError> {
    files::remove(path)
}

fn open(path: &Path) -> Result<Option<File>, KeyError> {
    // Without NONBLOCK, opening a pipe would wait for its other end.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => Ok(Some(file.into())),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::LOOP) => Err(KeyError::Symlink(path.to_owned())),
        Err(Errno::NXIO) => Err(KeyError::NotRegular(path.to_owned())),
        Err(errno) => Err(KeyError::Read { path: path.to_owned(), source: errno.into() }),
    }
}

fn check_private(path: &Path, file: &File) -> Result<(), KeyError> {
    let path = path.to_owned();
    let metadata = match file.metadata() {
        Ok(metadata) => metadata,
        Err(source) => return Err(KeyError::Read { path, source }),
    };
    let (owner, user) = (metadata.uid(), rustix::process::geteuid().as_raw());
    let mode = metadata.mode() & 0o7777;
    if !metadata.is_file() {
        return Err(KeyError::NotRegular(path));
    }
    if owner != user {
        return Err(KeyError::ForeignOwner { path, owner, user });
    }
    if mode & 0o077 != 0 {
        return Err(KeyError::Exposed { path, mode });
    }
    Ok(())
}

fn parse_file(text: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
    let encoded = text.strip_prefix(FILE_START.as_bytes())?.strip_suffix(b"\n")?;
    // The decoder wants room for all that 44 digits could say.
    let mut decoded = Zeroizing::new([0; 33]);
    let length = STANDARD.decode_slice(encoded, &mut *decoded).ok()?;
    let seed = decoded.first_chunk()?;
    (length == seed.len()).then(|| Zeroizing::new(*seed))
}

/// The content of a key's file.
fn line(seed: &[u8; 32]) -> Zeroizing<String> {
    let encoded = Zeroizing::new(STANDARD.encode(seed));
    Zeroizing::new([FILE_START, &encoded, "\n"].concat())
}

fn write_new(path: &Path, seed: &[u8; 32]) -> io::Result<()> {
    let line = line(seed);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(line.as_bytes())?;
    file.sync_all()?;
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    File::open(directory)?.sync_all()
}

/// Why a text does not hand over from one key to the next.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RotationError {
    /// The old key has not signed it, or it is not a note.
    #[error("the rotation is not confirmed by the old key")]
    Old(#[source] NoteError),
    /// It says something else.
    #[error("a rotation has three lines: `{ROTATION_START}`, the old key and the new key")]
    Lines,
    /// It is about another key than the one that is to be replaced.
    #[error("the rotation replaces another key")]
    OtherOldKey,
    /// The new key cannot be read.
    #[error("the new key is malformed")]
    NewKey(#[source] KeyTextError),
    /// The keys, or only their ids, are the same, so that their signatures cannot be told apart.
    #[error("old and new key have the same name and id")]
    SameId,
    /// The new key has not signed it: nobody has shown to have it.
    #[error("the rotation is not confirmed by the new key")]
    New(#[source] NoteError),
}

/// The statement that `new` takes the place of `old`, signed by both.
pub fn rotate(old: &SigningKey, new: &SigningKey) -> Result<String, RotationError> {
    let (from, to) = (old.verifying_key(), new.verifying_key());
    check_distinct(from, to)?;
    let body = format!("{ROTATION_START}\n{from}\n{to}\n");
    let note = sign_note(&body, old).map_err(RotationError::Old)?;
    cosign_note(&note, new).map_err(RotationError::New)
}

/// The key that takes the place of `old`, if `note` says so and both keys have signed it.
pub fn verify_rotation(note: &str, old: &VerifyingKey) -> Result<VerifyingKey, RotationError> {
    let note = Note::parse(note).map_err(RotationError::Old)?;
    let body = note.verify(old).map_err(RotationError::Old)?;
    let lines: Vec<&str> = body.split('\n').collect();
    let [ROTATION_START, from, to, ""] = lines.as_slice() else {
        return Err(RotationError::Lines);
    };
    if *from != old.to_string() {
        return Err(RotationError::OtherOldKey);
    }
    let new: VerifyingKey = to.parse().map_err(RotationError::NewKey)?;
    check_distinct(old, &new)?;
    note.verify(&new).map_err(RotationError::New)?;
    Ok(new)
}

fn check_distinct(old: &VerifyingKey, new: &VerifyingKey) -> Result<(), RotationError> {
    if (old.name(), old.id()) == (new.name(), new.id()) {
        return Err(RotationError::SameId);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
    use std::os::unix::net::UnixListener;

    use tempfile::TempDir;

    use super::*;
    use crate::checkpoint::open_note;

    const FIRST: &str = "fluffy-ledger+434c3a91+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4";
    const SECOND: &str = "fluffy-ledger+ee5f9ca8+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs";
    const LINE: &str = "fluffy-key-v1 ed25519 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n";

    fn first_seed() -> [u8; 32] {
        std::array::from_fn(|i| i as u8)
    }

    fn first() -> SigningKey {
        SigningKey::from_seed(KeyName::LEDGER, &first_seed())
    }

    fn second() -> SigningKey {
        SigningKey::from_seed(KeyName::LEDGER, &[7; 32])
    }

    /// A directory with the file `key` of this content and mode.
    fn key_file(content: &[u8], mode: u32) -> (TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        let mut file = OpenOptions::new().write(true).create_new(true).open(&path).unwrap();
        file.write_all(content).unwrap();
        file.set_permissions(fs::Permissions::from_mode(mode)).unwrap();
        (directory, path)
    }

    #[test]
    fn a_key_comes_back_from_the_file_it_was_put_in() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        assert!(SigningKey::load(&path).unwrap().is_none());
        let created = SigningKey::create(&path, first_seed()).unwrap();
        let loaded = SigningKey::load(&path).unwrap().unwrap();
        assert_eq!(created.verifying_key(), loaded.verifying_key());
        assert_eq!(loaded.verifying_key().to_string(), FIRST);
        assert_eq!(created.sign(b"text"), loaded.sign(b"text"));
        assert_eq!(fs::read_to_string(&path).unwrap(), LINE);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(FILE_LENGTH, LINE.len() as u64);
    }

    #[test]
    fn a_key_is_never_put_in_the_place_of_another_file() {
        let (_directory, path) = key_file(b"something else", 0o600);
        assert!(
            matches!(SigningKey::create(&path, [1; 32]), Err(KeyError::Exists(at)) if at == path)
        );
        assert_eq!(fs::read(&path).unwrap(), b"something else");

        let link = path.with_file_name("link");
        symlink(path.with_file_name("target"), &link).unwrap();
        assert!(matches!(SigningKey::create(&link, [1; 32]), Err(KeyError::Exists(_))));
        assert!(!path.with_file_name("target").exists());
    }

    #[test]
    fn a_key_without_a_directory_to_put_it_in_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("missing").join("key");
        assert!(matches!(SigningKey::create(&path, [1; 32]), Err(KeyError::Write { .. })));
        assert!(SigningKey::load(&path).unwrap().is_none());
        let (_directory, file) = key_file(LINE.as_bytes(), 0o600);
        assert!(matches!(SigningKey::load(&file.join("key")), Err(KeyError::Read { .. })));
    }

    #[test]
    fn a_file_that_others_may_touch_is_refused_with_the_remedy() {
        for mode in [0o640, 0o620, 0o610, 0o604, 0o602, 0o601, 0o644, 0o666, 0o777] {
            let (_directory, path) = key_file(LINE.as_bytes(), mode);
            let error = SigningKey::load(&path).unwrap_err();
            assert!(matches!(error, KeyError::Exposed { mode: found, .. } if found == mode));
            let remedy = format!("(mode {mode:o}); if nobody has read it, run `chmod 600 ");
            assert!(error.to_string().contains(&remedy), "{error}");
        }
        for mode in [0o600, 0o400] {
            let (_directory, path) = key_file(LINE.as_bytes(), mode);
            assert!(SigningKey::load(&path).unwrap().is_some());
        }
    }

    #[test]
    fn a_file_of_another_user_is_refused() {
        let (_directory, path) = key_file(LINE.as_bytes(), 0o600);
        let user = rustix::process::geteuid().as_raw();
        let foreign = match chown(&path, Some(user + 4321), None) {
            Ok(()) => path,
            // Only root may give files away; for everyone else there is a file of root's.
            Err(_) => PathBuf::from("/etc/passwd"),
        };
        let error = SigningKey::load(&foreign).unwrap_err();
        let expected = matches!(error, KeyError::ForeignOwner { owner, .. } if owner != user);
        assert!(expected, "{error}");
    }

    #[test]
    fn a_symbolic_link_is_refused_even_to_a_good_key() {
        let (_directory, path) = key_file(LINE.as_bytes(), 0o600);
        let link = path.with_file_name("link");
        symlink(&path, &link).unwrap();
        assert!(matches!(SigningKey::load(&link), Err(KeyError::Symlink(at)) if at == link));
        symlink("nowhere", path.with_file_name("dangling")).unwrap();
        let dangling = SigningKey::load(&path.with_file_name("dangling"));
        assert!(matches!(dangling, Err(KeyError::Symlink(_))));
    }

    #[test]
    fn what_is_not_a_regular_file_is_refused_without_waiting() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, Mode::from_raw_mode(0o600)).unwrap();
        let socket = directory.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        for path in [directory.path(), &fifo, &socket, Path::new("/dev/null")] {
            assert!(matches!(SigningKey::load(path), Err(KeyError::NotRegular(_))), "{path:?}");
        }
    }

    #[test]
    fn a_file_that_is_not_exactly_a_key_is_refused() {
        let seed = LINE.strip_prefix(FILE_START).unwrap().trim_end();
        let check = |content: &[u8]| {
            let (_directory, path) = key_file(content, 0o600);
            let result = SigningKey::load(&path);
            assert!(matches!(result, Err(KeyError::Malformed(_))), "{content:?}");
        };
        check(b"");
        check(b"\xff\xfe");
        check(LINE.trim_end().as_bytes());
        check(format!("{LINE}\n").as_bytes());
        check(format!("{LINE}{LINE}").as_bytes());
        check(format!(" {LINE}").as_bytes());
        check(LINE.replace('\n', "\r\n").as_bytes());
        check(LINE.replace("v1", "v2").as_bytes());
        check(LINE.replace("ed25519", "ed448").as_bytes());
        check(LINE.replace("Hh8=", "Hh9=").as_bytes());
        check(LINE.replace("Hh8=", "Hh8").as_bytes());
        check(LINE.replace(seed, &STANDARD.encode([1; 31])).as_bytes());
        check(LINE.replace(seed, &STANDARD.encode([1; 33])).as_bytes());
        check(LINE.replace(seed, "").as_bytes());
        check(&[b'x'; 100_000]);
    }

    #[test]
    fn a_key_is_shown_without_its_seed() {
        let shown = format!("{:?}", first());
        assert_eq!(shown, format!("SigningKey({FIRST}, seed hidden)"));
        assert!(!shown.contains("AAECAwQF") && !shown.contains("00010203"));
    }

    #[test]
    fn a_public_key_has_one_text_form() {
        let key: VerifyingKey = FIRST.parse().unwrap();
        assert_eq!(key.to_string(), FIRST);
        assert_eq!(&key, first().verifying_key());
        let check = |text: &str, error: KeyTextError| {
            assert_eq!(text.parse::<VerifyingKey>(), Err(error), "{text}");
        };
        let id = || KeyTextError::Id { expected: "434c3a91".to_owned() };
        check("", KeyTextError::Form);
        check("fluffy-ledger+434c3a91", KeyTextError::Form);
        check(&FIRST.replace("fluffy-ledger", ""), KeyTextError::Name);
        check(&FIRST.replace('-', " "), KeyTextError::Name);
        check(&FIRST.replace('-', "\u{2003}"), KeyTextError::Name);
        check(&FIRST.replace('-', "\u{1}"), KeyTextError::Name);
        check(&FIRST.replace("434c3a91", "434c3a92"), id());
        check(&FIRST.replace("434c3a91", "434C3A91"), id());
        check(&FIRST.replace("434c3a91", "0434c3a91"), id());
        check(&FIRST.replace("434c3a91", ""), id());
        check(&format!("{FIRST}="), KeyTextError::Base64);
        check(&format!("{FIRST}\n"), KeyTextError::Base64);
        check(&FIRST.replace("+AQ", "+Ag"), KeyTextError::Algorithm);
        check("a+00000000+", KeyTextError::Algorithm);
        check("a+00000000+AQ==", KeyTextError::Algorithm);
        let of_point = |point: [u8; 32]| {
            format!("a+00000000+{}", STANDARD.encode([&[ED25519], &point[..]].concat()))
        };
        let identity = std::array::from_fn(|i| u8::from(i == 0));
        check(&of_point(identity), KeyTextError::Unusable);
        let no_point = std::array::from_fn(|i| if i == 0 { 2 } else { 0 });
        check(&of_point(no_point), KeyTextError::Unusable);
    }

    #[test]
    fn a_rotation_is_the_note_that_python_gives() {
        let note = format!(
            "fluffy-key-rotation-v1\n{FIRST}\n{SECOND}\n\n\
             — fluffy-ledger Q0w6kVGgTW+vRVDrXD+n3hffXTKQMnE1rgYMZvqfOtQbbQRE1uVMvekB65j6YN98XkjWOF8g2AB8Jut8YyYBz23zSQQ=\n\
             — fluffy-ledger 7l+cqPeGi86MYNnhfVZ+WQbYeySL/ZqZq0lLIbU9VpZpOXWF/sf2Q0Ae3KSt+4fOZ9T8tdIEHqfDIwwmGHb9Cf3+xwA=\n"
        );
        assert_eq!(rotate(&first(), &second()).as_deref(), Ok(&note[..]));
        assert_eq!(verify_rotation(&note, first().verifying_key()), Ok(SECOND.parse().unwrap()));
    }

    #[test]
    fn a_rotation_needs_both_keys_and_their_right_order() {
        let (old, new) = (first(), second());
        let old_key = old.verifying_key();
        let check = |note: &str, error: RotationError| {
            assert_eq!(verify_rotation(note, old_key), Err(error), "{note}");
        };
        let sign = |body: &str| sign_note(body, &old).unwrap();
        let body = format!("{ROTATION_START}\n{FIRST}\n{SECOND}\n");

        check(&sign(&body), RotationError::New(NoteError::NotSigned(SECOND.to_owned())));
        let by_new = sign_note(&body, &new).unwrap();
        check(&by_new, RotationError::Old(NoteError::NotSigned(FIRST.to_owned())));
        let backwards = rotate(&new, &old).unwrap();
        check(&backwards, RotationError::OtherOldKey);
        check("no note", RotationError::Old(NoteError::NoDivider));
        check(&sign("something else\n"), RotationError::Lines);
        check(&sign(&format!("{body}more\n")), RotationError::Lines);
        check(&sign(&body.replace("v1", "v2")), RotationError::Lines);
        let malformed = RotationError::NewKey(KeyTextError::Form);
        check(&sign(&body.replace(SECOND, "none")), malformed);
        check(&sign(&body.replace(SECOND, FIRST)), RotationError::SameId);
        assert_eq!(rotate(&old, &first()), Err(RotationError::SameId));
    }

    #[test]
    fn every_changed_byte_of_a_rotation_is_noticed() {
        let note = rotate(&first(), &second()).unwrap();
        let old = first();
        for at in 0..note.len() {
            let mut bytes = note.clone().into_bytes();
            bytes[at] ^= 1 << (at % 8);
            let accepted = str::from_utf8(&bytes)
                .is_ok_and(|note| verify_rotation(note, old.verifying_key()).is_ok());
            assert!(!accepted, "byte {at}");
        }
        assert!(open_note(&note, second().verifying_key()).is_ok());
    }
}
