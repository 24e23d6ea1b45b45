//! What goes into a job and comes out of it.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use fluffy_base::ByteSize;
use fluffy_sandbox::{End, Input, Job, Limit, Output, Runtime};

use super::scene::{Scene, Seen, Waiting, executor, narrowed, run, text};

/// Both streams are captured, each in its order.
pub fn both_streams_are_captured_each_in_its_order(runtime: &dyn Runtime) {
    let script = "for i in $(seq 2000); do echo out $i; echo err $i >&2; done";
    let outcome = run(runtime, executor(), Job::new("sh").args(["-c", script]));
    let lines = |word: &str| (1..=2000).map(|i| format!("{word} {i}\n")).collect::<String>();
    assert!(outcome.is_success());
    assert_eq!(text(&outcome.stdout.bytes), lines("out"));
    assert_eq!(text(&outcome.stderr.bytes), lines("err"));
    assert!(!outcome.stdout.cut && !outcome.stderr.cut);
}

/// A job that prints more than its limit is ended, and what fits is kept.
pub fn a_job_that_prints_too_much_is_ended(runtime: &dyn Runtime) {
    for script in ["exec yes", "exec yes >&2", "yes & yes >&2"] {
        let config = narrowed(|limits| limits.captured = ByteSize::from_bytes(10_000));
        let outcome = run(runtime, config, Job::new("sh").args(["-c", script]));
        assert_eq!(outcome.end, End::Limit(Limit::Captured), "{script}");
        assert_eq!(outcome.reached, [Limit::Captured], "{script}");
        let streams = [&outcome.stdout, &outcome.stderr];
        assert!(
            streams.iter().any(|stream| stream.cut && stream.bytes.len() == 10_000),
            "{script}"
        );
        assert!(streams.iter().all(|stream| stream.bytes.len() <= 10_000), "{script}");
    }
    let config = narrowed(|limits| limits.captured = ByteSize::from_bytes(10_000));
    let outcome = run(runtime, config, Job::new("head").args(["-c", "10000", "/dev/zero"]));
    assert!(outcome.is_success() && !outcome.stdout.cut, "{}", outcome.end);
}

/// The watcher sees what is printed while the job runs, and `logs` tells it, too.
pub fn output_is_seen_while_the_job_runs(runtime: &dyn Runtime) {
    let scene = Scene::new();
    let script = "echo one; read line; echo two $line";
    let mut waiting = Waiting::start(runtime, executor(), scene.script(script));
    let (out, err) = waiting.sandbox.logs();
    assert_eq!((out.bytes, err.bytes), (b"one\n".to_vec(), Vec::new()));
    waiting.say("and more\n");
    assert_eq!(waiting.outcome().stdout.bytes, b"one\ntwo and more\n");
    assert_eq!(waiting.printed.recv().unwrap(), b"two and more\n");
    for _ in 0..2 {
        assert_eq!(waiting.sandbox.logs().0.bytes, b"one\ntwo and more\n");
        waiting.sandbox.remove();
    }
}

/// Ten megabytes go in and come out unchanged.
pub fn ten_megabytes_go_in_and_come_out(runtime: &dyn Runtime) {
    let bytes: Vec<u8> =
        (0..10_000_000_u32).flat_map(|i| (i % 251).to_le_bytes().into_iter().take(1)).collect();
    let mut job = Job::new("cat");
    job.stdin = Input::Bytes(bytes.clone());
    let outcome = run(runtime, executor(), job);
    assert!(outcome.is_success(), "{}", outcome.end);
    assert!(outcome.stdout.bytes == bytes, "{} bytes came out", outcome.stdout.bytes.len());
}

/// A job that does not read what it is given ends as it would have.
pub fn input_that_nobody_reads_holds_nobody_up(runtime: &dyn Runtime) {
    for script in ["exit 0", "exec <&-; sleep 0.1; exit 0", "head -c 1 >/dev/null"] {
        let mut job = Job::new("sh").args(["-c", script]);
        job.stdin = Input::Bytes(vec![b'x'; 1_000_000]);
        assert_eq!(run(runtime, executor(), job).end, End::Exited(0), "{script}");
    }
    let mut job = Job::new("wc").args(["-c"]);
    job.stdin = Input::Nothing;
    assert_eq!(text(&run(runtime, executor(), job).stdout.bytes).trim(), "0");
}

/// A guest speaks over sockets of the kernel's; its standard error is captured beside it.
pub fn a_guest_speaks_over_a_socket(runtime: &dyn Runtime) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut job = Job::new("sh").args(["-c", "echo noise >&2; read line; echo answer to $line"]);
    job.stdin = Input::From(theirs.try_clone().unwrap().into());
    job.stdout = Output::To(theirs.into());
    let sandbox = runtime.create(executor(), job).unwrap();
    let (seen, printed) = Seen::new();
    sandbox.start(Arc::new(seen)).unwrap();
    (&ours).write_all(b"a question\n").unwrap();
    let mut answer = String::new();
    (&ours).read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "answer to a question\n");
    assert_eq!(printed.recv().unwrap(), b"noise\n");
    let outcome = sandbox.wait().unwrap();
    assert_eq!(outcome.stdout.bytes, b"");
    assert_eq!(outcome.stderr.bytes, b"noise\n");
}

/// A job finds its streams by name, too.
pub fn streams_can_be_opened_by_name(runtime: &dyn Runtime) {
    let script =
        "cat /dev/stdin; echo out >/dev/stdout; echo err >/dev/stderr; echo fd >/proc/self/fd/1";
    let mut job = Job::new("sh").args(["-c", script]);
    job.stdin = Input::Bytes(b"in\n".to_vec());
    let outcome = run(runtime, executor(), job);
    assert_eq!(text(&outcome.stdout.bytes), "in\nout\nfd\n");
    assert_eq!(text(&outcome.stderr.bytes), "err\n");
}

/// A file or a terminal is not handed to a job: it could be opened again, or typed into.
pub fn only_pipes_and_sockets_are_handed_over(runtime: &dyn Runtime) {
    let scene = Scene::new();
    let file = || std::fs::File::options().read(true).append(true).open(scene.path("project/kept"));
    let mut reads = Job::new("true");
    reads.stdin = Input::From(file().unwrap().into());
    let mut writes = Job::new("true");
    writes.stdout = Output::To(file().unwrap().into());
    for job in [reads, writes] {
        assert!(runtime.run(executor(), job, Arc::new(())).is_err());
    }
}

/// How a job ended is told by its code or by its signal.
pub fn codes_and_signals_are_told(runtime: &dyn Runtime) {
    let ends = [
        ("exit 0", End::Exited(0)),
        ("exit 7", End::Exited(7)),
        ("exit 255", End::Exited(255)),
        ("kill -SEGV $$", End::Signalled(11)),
        ("kill -KILL $$", End::Signalled(9)),
        ("kill -TERM $$", End::Signalled(15)),
        ("sleep 1000 & exit 5", End::Exited(5)),
    ];
    for (script, end) in ends {
        let outcome = run(runtime, executor(), Job::new("sh").args(["-c", script]));
        assert_eq!((outcome.end, outcome.reached), (end, Vec::new()), "{script}");
    }
}

/// Arguments, variables and directories arrive as they are, whatever their bytes.
pub fn arguments_arrive_as_they_are(runtime: &dyn Runtime) {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;
    let odd = OsString::from_vec(b"a b\n'\"$(x)\xff\xfe*".to_vec());
    let job = Job::new("printf").args([OsString::from("%s|"), odd.clone(), "".into(), odd.clone()]);
    let outcome = run(runtime, executor(), job);
    let mut expected = odd.clone().into_vec();
    expected.extend(b"||");
    expected.extend(odd.into_vec());
    expected.push(b'|');
    assert_eq!(outcome.stdout.bytes, expected);
    let mut job = Job::new("pwd");
    job.cwd = Some("/usr/bin".into());
    assert_eq!(run(runtime, executor(), job).stdout.bytes, b"/usr/bin\n");
    assert_eq!(run(runtime, executor(), Job::new("pwd")).stdout.bytes, b"/tmp\n");
}
