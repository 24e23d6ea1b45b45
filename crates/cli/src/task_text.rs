//! The words of a task: typed with the command, or read from the standard input.

use std::io::{IsTerminal, Read};

use fluffy_base::is_blank;

/// The longest task, in bytes.
const MAX_TASK_BYTES: u64 = 1 << 20;

/// Why there is no task.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TaskError {
    #[error("there is no task")]
    Absent,
    #[error("the task is empty")]
    Blank,
    #[error("the task has more than {MAX_TASK_BYTES} bytes")]
    Long,
    #[error("the task is not UTF-8")]
    NotText,
    #[error("the task cannot be read from the standard input")]
    Unreadable(#[from] std::io::Error),
}

/// The task. `-`, or nothing where input is piped, reads it from `input`.
pub(crate) fn read(
    typed: Option<&str>,
    input: &mut (impl Read + IsTerminal),
) -> Result<String, TaskError> {
    let text = match typed {
        None if input.is_terminal() => return Err(TaskError::Absent),
        None | Some("-") => {
            let mut bytes = Vec::new();
            input.take(MAX_TASK_BYTES + 1).read_to_end(&mut bytes)?;
            if bytes.len() as u64 > MAX_TASK_BYTES {
                return Err(TaskError::Long);
            }
            String::from_utf8(bytes).map_err(|_| TaskError::NotText)?
        }
        Some(text) if text.len() as u64 > MAX_TASK_BYTES => return Err(TaskError::Long),
        Some(text) => text.to_owned(),
    };
    if is_blank(&text) { Err(TaskError::Blank) } else { Ok(text.trim().to_owned()) }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, Write as _};

    use super::*;

    fn piped(typed: Option<&str>, bytes: &[u8]) -> Result<String, String> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.rewind().unwrap();
        read(typed, &mut file).map_err(|error| error.to_string())
    }

    #[test]
    fn a_task_is_typed_or_piped() {
        assert_eq!(piped(Some("typed"), b"piped").unwrap(), "typed");
        assert_eq!(piped(None, b"piped\n").unwrap(), "piped");
        assert_eq!(
            piped(Some("-"), "größer\nals eine Zeile\n".as_bytes()).unwrap(),
            "größer\nals eine Zeile"
        );
    }

    #[test]
    fn what_is_no_task_is_refused() {
        for blank in ["", " \n", "\u{200b}"] {
            assert_eq!(piped(None, blank.as_bytes()).unwrap_err(), "the task is empty");
            assert_eq!(piped(Some(blank), b"").unwrap_err(), "the task is empty");
        }
        assert_eq!(piped(None, b"\xff\xfe").unwrap_err(), "the task is not UTF-8");
    }

    #[test]
    fn a_task_of_a_mebibyte_is_read_and_no_more() {
        let most = vec![b'x'; 1 << 20];
        assert_eq!(piped(None, &most).unwrap().len(), 1 << 20);
        let more = vec![b'x'; (1 << 20) + 1];
        assert_eq!(piped(None, &more).unwrap_err(), "the task has more than 1048576 bytes");
    }
}
