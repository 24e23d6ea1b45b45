//! What goes wrong with an engine is said, and leaves nothing behind.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fluffy_sandbox::{
    Config, End, Engine, EngineKind, Fetch, ImageChoice, Input, Job, Runtime as _, RuntimeError,
    Template,
};
use fluffy_testkit::engines::socket;

use crate::engine::{open, options, ordinarily};

fn executor() -> Config {
    Config::of(Template::CodeExecutor)
}

/// A way to an engine that can be cut.
struct Way {
    socket: PathBuf,
    cut: Arc<AtomicBool>,
}

impl Way {
    fn to(kind: EngineKind, place: &Path) -> Self {
        let at = place.join("way.sock");
        let listener = UnixListener::bind(&at).unwrap();
        let cut = Arc::new(AtomicBool::new(false));
        let is_cut = Arc::clone(&cut);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if is_cut.load(Ordering::SeqCst) {
                    // As an engine that was killed: whoever asks is hung up on.
                    continue;
                }
                let engine = UnixStream::connect(socket(kind)).unwrap();
                let (mut asks, mut asked) =
                    (stream.try_clone().unwrap(), engine.try_clone().unwrap());
                std::thread::spawn(move || io::copy(&mut asks, &mut asked));
                std::thread::spawn(move || {
                    let (mut answers, mut answered) = (engine, stream);
                    let _gone = io::copy(&mut answers, &mut answered);
                    let _shut = answered.shutdown(std::net::Shutdown::Both);
                });
            }
        });
        Self { socket: at, cut }
    }

    fn cut(&self) {
        self.cut.store(true, Ordering::SeqCst);
    }
}

/// An engine that is gone in mid-run takes nothing with it: the job ends as it would have, and so does one that is
/// killed; what the engine still has of them is swept up by the next who opens the driver.
fn lost_in_mid_run(kind: EngineKind, place: &Path) {
    let way = Way::to(kind, place);
    let engine = open(options(kind, way.socket.clone(), place));
    let (theirs, ours) = io::pipe().unwrap();
    let mut job = Job::new("sh").args(["-c", "echo there; read line; exit 7"]);
    job.stdin = Input::From(theirs.into());
    let (one, other) = (
        engine.create(executor(), job).unwrap(),
        engine.create(executor(), Job::new("sleep").args(["1000"])).unwrap(),
    );
    one.start(Arc::new(())).unwrap();
    other.start(Arc::new(())).unwrap();
    way.cut();
    drop(ours);
    assert_eq!(one.wait().unwrap().end, End::Exited(7));
    other.kill();
    assert_eq!(other.wait().unwrap().end, End::Stopped);
    let refused = engine.run(executor(), Job::new("true"), Arc::new(()));
    assert!(matches!(refused, Err(RuntimeError::Engine(_))), "{refused:?}");
    drop((one, other));
    drop(engine);
    let again = open(options(kind, socket(kind), place));
    assert!(again.run(executor(), Job::new("true"), Arc::new(())).unwrap().is_success());
    assert_eq!(again.sweep(), fluffy_sandbox::Swept::default(), "opening it swept all up");
    drop(again);
    let left: Vec<_> = std::fs::read_dir(place.join("state")).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// The words of an error, and what helps.
fn said(refused: Result<Engine, RuntimeError>) -> String {
    match refused {
        Err(RuntimeError::Engine(error)) => {
            let cause = std::error::Error::source(&error).unwrap();
            format!("{error}: {cause}; {}", error.fix())
        }
        other => panic!("{:?}", other.map(drop)),
    }
}

fn explained(kind: EngineKind, place: &Path) {
    // Where nobody may speak to it.
    let closed = place.join("closed.sock");
    let _listener = UnixListener::bind(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
    let text = said(Engine::open(options(kind, closed, place)));
    assert!(text.contains("cannot be used") && text.contains("use "), "{text}");
    assert!(
        text.contains(if kind == EngineKind::Docker {
            "rootless Docker"
        } else {
            "your own service"
        }),
        "{text}"
    );
    // Where nobody is.
    let text = said(Engine::open(options(kind, place.join("nowhere.sock"), place)));
    assert!(text.contains("start "), "{text}");
    // Where the image is not, and must not be fetched.
    let name = "example.invalid/no/such:1".parse().unwrap();
    let image = ImageChoice::Named(name, Fetch::Never);
    let options = fluffy_sandbox::EngineOptions { image, ..options(kind, socket(kind), place) };
    let text = said(Engine::open(options));
    assert!(text.contains("No such image") && text.contains("pull"), "{text}");
}

mod docker {
    use super::*;

    #[test]
    fn an_engine_that_is_gone_in_mid_run_leaves_no_job_and_no_container() {
        let name =
            "failures::docker::an_engine_that_is_gone_in_mid_run_leaves_no_job_and_no_container";
        ordinarily(EngineKind::Docker, name, |place| lost_in_mid_run(EngineKind::Docker, place));
    }

    #[test]
    fn what_keeps_an_engine_from_being_used_is_explained() {
        let name = "failures::docker::what_keeps_an_engine_from_being_used_is_explained";
        ordinarily(EngineKind::Docker, name, |place| explained(EngineKind::Docker, place));
    }
}

mod podman {
    use super::*;

    #[test]
    fn an_engine_that_is_gone_in_mid_run_leaves_no_job_and_no_container() {
        let name =
            "failures::podman::an_engine_that_is_gone_in_mid_run_leaves_no_job_and_no_container";
        ordinarily(EngineKind::Podman, name, |place| lost_in_mid_run(EngineKind::Podman, place));
    }

    #[test]
    fn what_keeps_an_engine_from_being_used_is_explained() {
        let name = "failures::podman::what_keeps_an_engine_from_being_used_is_explained";
        ordinarily(EngineKind::Podman, name, |place| explained(EngineKind::Podman, place));
    }
}
