//! Whom this process works for, by the system's word.

use std::io::Read as _;

/// The longest list of users that is looked at.
const MAX_BYTES: u64 = 4 << 20;

/// The name of the user whose process this is; their number, where the system's own list has no name for it.
pub(crate) fn person() -> String {
    let uid = rustix::process::getuid().as_raw();
    let mut text = String::new();
    let read = std::fs::File::open("/etc/passwd")
        .and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text));
    let name = read.ok().and_then(|_| named(&text, uid));
    name.map_or_else(|| format!("user {uid}"), str::to_owned)
}

/// The name of a user in the system's list.
fn named(list: &str, uid: u32) -> Option<&str> {
    let found = list.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse::<u32>().ok()? == uid).then_some(name)
    });
    found.filter(|name| !name.is_empty() && name.len() <= 64 && !name.contains(char::is_control))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_called_what_the_system_calls_them() {
        let list = "root:x:0:0:root:/root:/bin/sh\nada:x:1000:1000:Ada:/home/ada:/bin/sh\nodd\n:x:7:7::/:/\n";
        assert_eq!(named(list, 0), Some("root"));
        assert_eq!(named(list, 1000), Some("ada"));
        assert_eq!(named(list, 7), None);
        assert_eq!(named(list, 42), None);
        assert!(!person().is_empty());
    }
}
