//! D-Bus messages, as far as the keyring needs them: written and read in little endian.
//!
//! **Invariant.** What comes from the bus is read within its bounds, in memory that is bounded before it is taken.

/// The longest message that is read.
pub(super) const MAX_MESSAGE: usize = 1 << 20;
/// How long the part of a head is whose length is fixed, the length of the fields included.
pub(super) const HEAD: usize = 16;

/// Why a message makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum WireError {
    #[error("a message of the bus ends too early")]
    Short,
    #[error("a message of the bus is too long")]
    Long,
    #[error("a message of the bus is not understood")]
    Odd,
}

/// Writes values one behind the other, each where its kind has to begin.
#[derive(Debug, Default)]
pub(super) struct Writer(Vec<u8>);

/// Reads them.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A call of a method.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) destination: &'a str,
    pub(super) path: &'a str,
    pub(super) interface: &'a str,
    pub(super) member: &'a str,
    /// The kinds of the values in the body.
    pub(super) signature: &'a str,
    pub(super) body: &'a [u8],
}

/// What a message is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The answer to the call of this number.
    Return(u32),
    /// That call failed, by the name of the error.
    Error(u32, String),
    /// Something else.
    Other,
}

impl Writer {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn align(&mut self, to: usize) {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
    }

    pub(super) fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(super) fn number(&mut self, value: u32) {
        self.align(4);
        self.0.extend(value.to_le_bytes());
    }

    /// A text or a path of an object. Lengths above what a message holds are refused by the bus.
    pub(super) fn text(&mut self, text: &str) {
        self.number(u32::try_from(text.len()).unwrap_or(u32::MAX));
        self.0.extend(text.as_bytes());
        self.byte(0);
    }

    pub(super) fn signature(&mut self, text: &str) {
        self.byte(u8::try_from(text.len()).unwrap_or(u8::MAX));
        self.0.extend(text.as_bytes());
        self.byte(0);
    }

    /// A list whose elements begin at multiples of `to`.
    pub(super) fn list(&mut self, to: usize, elements: impl FnOnce(&mut Self)) {
        self.number(0);
        let length_at = self.0.len().saturating_sub(4);
        self.align(to);
        let begin = self.0.len();
        elements(self);
        let length = u32::try_from(self.0.len().saturating_sub(begin)).unwrap_or(u32::MAX);
        if let Some(place) = self.0.get_mut(length_at..length_at.saturating_add(4)) {
            place.copy_from_slice(&length.to_le_bytes());
        }
    }

    /// Texts by their names.
    pub(super) fn pairs(&mut self, pairs: &[(&str, &str)]) {
        self.list(8, |list| {
            for (name, value) in pairs {
                list.align(8);
                list.text(name);
                list.text(value);
            }
        });
    }

    /// Paths of objects.
    pub(super) fn paths(&mut self, paths: &[String]) {
        self.list(4, |list| paths.iter().for_each(|path| list.text(path)));
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn align(&mut self, to: usize) {
        self.at = self.at.next_multiple_of(to);
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], WireError> {
        let end = self.at.checked_add(length).ok_or(WireError::Short)?;
        let part = self.bytes.get(self.at..end).ok_or(WireError::Short)?;
        self.at = end;
        Ok(part)
    }

    pub(super) fn byte(&mut self) -> Result<u8, WireError> {
        self.take(1)?.first().copied().ok_or(WireError::Short)
    }

    pub(super) fn number(&mut self) -> Result<u32, WireError> {
        self.align(4);
        let bytes = self.take(4)?.try_into().map_err(|_| WireError::Short)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn length(&mut self) -> Result<usize, WireError> {
        usize::try_from(self.number()?).map_err(|_| WireError::Long)
    }

    /// A text or a path of an object.
    pub(super) fn text(&mut self) -> Result<&'a str, WireError> {
        let length = self.length()?;
        self.ended(length)
    }

    pub(super) fn signature(&mut self) -> Result<&'a str, WireError> {
        let length = self.byte()?.into();
        self.ended(length)
    }

    fn ended(&mut self, length: usize) -> Result<&'a str, WireError> {
        let text = std::str::from_utf8(self.take(length)?).map_err(|_| WireError::Odd)?;
        if self.byte()? == 0 { Ok(text) } else { Err(WireError::Odd) }
    }

    /// A list of bytes.
    pub(super) fn blob(&mut self) -> Result<&'a [u8], WireError> {
        let length = self.length()?;
        self.take(length)
    }

    /// A list of paths of objects.
    pub(super) fn paths(&mut self) -> Result<Vec<String>, WireError> {
        let length = self.length()?;
        let end = self.at.checked_add(length).ok_or(WireError::Short)?;
        let mut paths = Vec::new();
        while self.at < end {
            paths.push(self.text()?.to_owned());
        }
        if self.at == end { Ok(paths) } else { Err(WireError::Odd) }
    }
}

impl Call<'_> {
    /// The call as it is sent, under this number.
    pub(super) fn message(&self, serial: u32) -> Vec<u8> {
        let mut out = Writer::default();
        // Little endian, a call, no flags, version 1.
        for byte in [b'l', 1, 0, 1] {
            out.byte(byte);
        }
        out.number(u32::try_from(self.body.len()).unwrap_or(u32::MAX));
        out.number(serial);
        out.list(8, |fields| {
            let texts = [
                (1, "o", self.path),
                (2, "s", self.interface),
                (3, "s", self.member),
                (6, "s", self.destination),
            ];
            for (code, kind, text) in texts {
                fields.align(8);
                fields.byte(code);
                fields.signature(kind);
                fields.text(text);
            }
            if !self.signature.is_empty() {
                fields.align(8);
                fields.byte(8);
                fields.signature("g");
                fields.signature(self.signature);
            }
        });
        out.align(8);
        out.0.extend(self.body);
        out.0
    }
}

/// How long a message is behind the fixed part of its head, of which the length of its body is given, too.
pub(super) fn lengths(head: &[u8; HEAD]) -> Result<(usize, usize), WireError> {
    let mut reader = Reader::new(head);
    if reader.byte()? != b'l' {
        return Err(WireError::Odd);
    }
    let body = reader.length()?;
    let _serial = reader.number()?;
    let fields = reader.length()?;
    let rest = fields.checked_next_multiple_of(8).and_then(|fields| fields.checked_add(body));
    let rest = rest.filter(|rest| *rest <= MAX_MESSAGE).ok_or(WireError::Long)?;
    Ok((rest, body))
}

/// What a message is, by its head with all fields.
pub(super) fn kind(head: &[u8]) -> Result<Kind, WireError> {
    let mut reader = Reader::new(head);
    let kind = reader.take(4)?.get(1).copied().unwrap_or_default();
    reader.take(8)?;
    let end = reader.length()?.checked_add(HEAD).ok_or(WireError::Long)?;
    let (mut answered, mut error) = (0, String::new());
    while reader.at < end {
        reader.align(8);
        let code = reader.byte()?;
        match reader.signature()? {
            "u" => {
                let number = reader.number()?;
                if code == 5 {
                    answered = number;
                }
            }
            "s" | "o" => {
                let text = reader.text()?;
                if code == 4 {
                    text.clone_into(&mut error);
                }
            }
            "g" => {
                reader.signature()?;
            }
            _other => return Err(WireError::Odd),
        }
    }
    Ok(match kind {
        2 => Kind::Return(answered),
        3 => Kind::Error(answered, error),
        _ => Kind::Other,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_call_is_written_as_the_specification_says() {
        let mut body = Writer::default();
        body.text("x");
        let call = Call {
            destination: "d",
            path: "/p",
            interface: "i",
            member: "m",
            signature: "s",
            body: body.bytes(),
        };
        let message = call.message(7);
        let head: &[u8; HEAD] = message.first_chunk().unwrap();
        let (rest, body) = lengths(head).unwrap();
        assert_eq!((message.len(), body), (HEAD + rest, 6));
        assert_eq!(message.len() % 8, 6);
        assert_eq!(&message[..16], b"l\x01\x00\x01\x06\0\0\0\x07\0\0\0\x47\0\0\0");
        assert_eq!(&message[16..28], b"\x01\x01o\0\x02\0\0\0/p\0\0");
        assert_eq!(kind(&message[..message.len() - 6]), Ok(Kind::Other));
    }

    #[test]
    fn values_are_read_as_they_were_written() {
        let mut out = Writer::default();
        out.byte(9);
        out.text("größe");
        out.paths(&["/a".to_owned(), "/bc".to_owned()]);
        out.list(1, |list| b"key".iter().for_each(|byte| list.byte(*byte)));
        out.signature("s");
        let mut reader = Reader::new(out.bytes());
        assert_eq!(reader.byte(), Ok(9));
        assert_eq!(reader.text(), Ok("größe"));
        assert_eq!(reader.paths().unwrap(), ["/a", "/bc"]);
        assert_eq!(reader.blob(), Ok(&b"key"[..]));
        assert_eq!(reader.signature(), Ok("s"));
        assert_eq!(reader.byte(), Err(WireError::Short));
    }

    proptest! {
        #[test]
        fn no_bytes_of_the_bus_are_read_out_of_bounds(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(head) = bytes.first_chunk() {
                let _ok = lengths(head);
            }
            let _ok = kind(&bytes);
            let _ok = Reader::new(&bytes).paths();
            let _ok = Reader::new(&bytes).blob();
            let _ok = Reader::new(&bytes).text();
        }
    }
}
