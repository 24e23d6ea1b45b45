//! Lines from outside, in bounded memory.

use std::io::{self, BufRead};

/// One line, or why there is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line without its end.
    Text(Vec<u8>),
    /// A line of so many bytes, which were read and thrown away.
    TooLong(u64),
    /// There are no more.
    End,
}

/// Reads one line of at most `limit` bytes.
pub(crate) fn read_line(from: &mut impl BufRead, limit: usize) -> io::Result<Line> {
    let mut text = Vec::new();
    let mut length: u64 = 0;
    loop {
        let available = match from.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if available.is_empty() && length == 0 {
            return Ok(Line::End);
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let (part, _) = available.split_at(end.unwrap_or(available.len()));
        if text.len() + part.len() <= limit {
            text.extend_from_slice(part);
        } else {
            text = Vec::new();
        }
        let ended = end.is_some() || available.is_empty();
        length += part.len() as u64;
        let used = part.len() + usize::from(end.is_some());
        from.consume(used);
        if ended {
            let fits = length <= limit as u64;
            return Ok(if fits { Line::Text(text) } else { Line::TooLong(length) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8], limit: usize, chunk: usize) -> Vec<Line> {
        let mut from = io::BufReader::with_capacity(chunk, text);
        let mut lines = Vec::new();
        loop {
            match read_line(&mut from, limit).unwrap() {
                Line::End => return lines,
                line => lines.push(line),
            }
        }
    }

    #[test]
    fn long_lines_are_skipped_and_the_next_one_is_read() {
        for chunk in [1, 2, 3, 64] {
            let text = |t: &str| Line::Text(t.as_bytes().to_vec());
            let expected = vec![text("ab"), Line::TooLong(7), text("c"), text("last")];
            assert_eq!(lines(b"ab\n1234567\nc\nlast", 4, chunk), expected);
        }
    }

    #[test]
    fn an_empty_line_in_the_middle_is_a_line() {
        assert_eq!(lines(b"a\n\nb\n", 9, 4).len(), 3);
        assert_eq!(lines(b"", 9, 4), vec![]);
    }
}
