//! What those who wait are told of what is being prepared: news, and not every hundredth.

use std::io::{self, Write as _};
use std::time::Duration;

use fluffy_base::{Event, Observer};

use crate::inert::inert;

/// How long news are waited for, before whoever waits looks whether it is still wanted.
pub(crate) const LOOK: Duration = Duration::from_millis(200);

/// How far it is, in words; nothing where that is not known.
pub(crate) fn far(progress: Option<u8>) -> String {
    progress.map(|hundredths| format!(": {hundredths} %")).unwrap_or_default()
}

/// Why whoever waits does, and how far it is.
pub(crate) fn waiting(what: &str, progress: Option<u8>) -> String {
    format!("waiting, {what}{}", far(progress))
}

/// Tells whoever waits for something else than a task why it does not begin yet, on the standard error.
pub(crate) struct Preparing;

impl Observer for Preparing {
    fn notice(&self, event: Event) {
        if let Event::SandboxPending { what, progress } = event {
            // Whoever does not look does not have to.
            let _unseen = writeln!(io::stderr(), "{}", waiting(&inert(&what), progress));
        }
    }
}

/// What was told last.
#[derive(Default)]
pub(crate) struct Shown(Option<(String, Option<u8>)>);

impl Shown {
    /// Whether this is worth telling; if it is, it counts as told.
    pub(crate) fn is_news(&mut self, what: &str, progress: Option<u8>) -> bool {
        let tenths = progress.map(|hundredths| hundredths / 10);
        let is_news = self.0.as_ref().is_none_or(|(told, at)| told != what || *at != tenths);
        if is_news {
            self.0 = Some((what.to_owned(), tenths));
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sbx_10_those_who_wait_are_told_each_tenth_once() {
        let mut shown = Shown::default();
        let mut news = |progress| shown.is_news("it is fetched", progress);
        assert!(news(None));
        assert!(!news(None));
        assert!(news(Some(0)));
        assert!(!news(Some(9)));
        assert!(news(Some(10)));
        assert!(!news(Some(19)));
        assert!(shown.is_news("something else", Some(19)));
    }
}
