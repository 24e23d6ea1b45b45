//! What those who wait are told: what is being prepared, by news and not by every hundredth, and how long it takes.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fluffy_base::{Clock, Event, Observer};

use crate::inert::inert;
use crate::render::{Look, Pen, Progress, Status, waited};
use crate::review::{Answers, Asked, Reply, TaskReviewer};

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

/// Tells whoever waits for something else than a task why it does not begin yet and, on a screen, how long it takes.
pub(crate) struct Wait {
    what: String,
    since_ms: u64,
    clock: Arc<dyn Clock>,
    pen: Mutex<Pen>,
    reviewer: TaskReviewer,
}

impl Wait {
    /// Waits for `what`; what is asked meanwhile, the reviewer asks.
    pub(crate) fn new(
        what: String,
        out: Box<dyn io::Write + Send>,
        (look, clock): (Look, Arc<dyn Clock>),
        reviewer: TaskReviewer,
    ) -> Arc<Self> {
        let (since_ms, pen) = (clock.now_ms(), Mutex::new(Pen::new(out, look)));
        Arc::new(Self { what, since_ms, clock, pen, reviewer })
    }

    /// Does it, while this is shown.
    pub(crate) fn shown_while<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> io::Result<T> {
        let status: Arc<dyn Status> = Arc::<Self>::clone(self);
        let is_screen = self.pen().look().screen.is_some();
        let progress = is_screen.then(|| Progress::of(status)).transpose()?;
        let done = work();
        drop(progress);
        self.pen().erase();
        Ok(done)
    }

    fn pen(&self) -> MutexGuard<'_, Pen> {
        self.pen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Status for Wait {
    fn tick(&self) {
        let mut pen = self.pen();
        if let Some(status) = waited(&pen.look(), &self.what, (self.since_ms, self.clock.now_ms()))
        {
            pen.status(&status);
        }
    }
}

impl Observer for Wait {
    fn notice(&self, event: Event) {
        if let Event::SandboxPending { what, progress } = event {
            self.pen().line(&waiting(&inert(&what), progress));
        }
    }
}

/// Nothing is drawn while a person is asked.
impl Answers for Wait {
    fn answer(&self, asked: &Asked) -> Reply {
        self.pen().hold();
        let reply = self.reviewer.answer(asked);
        self.pen().release();
        reply
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
    use fluffy_base::VirtualClock;

    use super::*;
    use crate::render::Screen;
    use crate::review::{Person, Said};

    /// Keeps what is written.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Kept {
        fn take(&self) -> String {
            String::from_utf8(std::mem::take(&mut self.0.lock().unwrap())).unwrap()
        }
    }

    impl io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Somebody who notes that they were asked, and during whose thoughts the clock goes on.
    struct Slow(Kept, Arc<Mutex<Option<Arc<Wait>>>>);

    impl Person for Slow {
        fn show(&self, _: &str) -> io::Result<()> {
            Ok(())
        }

        fn answer(&self, _: &str) -> io::Result<Option<String>> {
            if let Some(wait) = &*self.1.lock().unwrap() {
                wait.tick();
            }
            io::Write::write_all(&mut self.0.clone(), b"(asked)")?;
            Ok(Some("y".to_owned()))
        }
    }

    fn waiting_for(screen: Option<Screen>) -> (Arc<Wait>, Kept, Arc<VirtualClock>) {
        let (kept, clock) = (Kept::default(), Arc::new(VirtualClock::new(0, 0)));
        let look = Look { colour: false, screen };
        let themselves = Arc::default();
        let person = Box::new(Slow(kept.clone(), Arc::clone(&themselves)));
        let reviewer = TaskReviewer::new(Said::Nothing, person, look);
        let (out, time) = (Box::new(kept.clone()), Arc::<VirtualClock>::clone(&clock));
        let wait = Wait::new("building it".to_owned(), out, (look, time), reviewer);
        *themselves.lock().unwrap() = Some(Arc::clone(&wait));
        (wait, kept, clock)
    }

    #[test]
    fn cli_2_what_takes_longer_than_a_second_is_shown_with_its_time_and_goes_away_again() {
        let (wait, kept, clock) = waiting_for(Some(Screen::Columns(60)));
        clock.advance(999);
        wait.tick();
        assert_eq!(kept.take(), "");
        clock.advance(2_001);
        wait.tick();
        let shown = kept.take();
        assert!(shown.contains("building it  3 s"), "{shown:?}");
        wait.notice(Event::SandboxPending { what: "it is fetched".to_owned(), progress: Some(40) });
        let shown = kept.take();
        assert!(shown.starts_with("\r\x1b[K") && shown.ends_with("40 %\n"), "{shown:?}");
        wait.tick();
        kept.take();
        assert_eq!(wait.shown_while(|| 7).unwrap(), 7);
        assert!(kept.take().ends_with("\r\x1b[K"), "nothing of it stays");
    }

    #[test]
    fn cli_2_nothing_is_drawn_while_a_person_is_asked_and_nothing_where_there_is_no_screen() {
        let (wait, kept, clock) = waiting_for(Some(Screen::Columns(60)));
        clock.advance(5_000);
        let asked = Asked {
            action: "do it".to_owned(),
            reasons: Vec::new(),
            notes: Vec::new(),
            given: String::new(),
            diff: None,
            beforehand: false,
            phrase: None,
            scopes: vec![fluffy_kernel::Scope::default()],
            exception: None,
        };
        let reply = wait.answer(&asked);
        assert!(matches!(reply, Reply::Typed { yes: true, .. }), "{reply:?}");
        assert_eq!(kept.take(), "(asked)");
        let (wait, kept, clock) = waiting_for(None);
        clock.advance(5_000);
        wait.tick();
        assert_eq!(kept.take(), "");
    }

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
