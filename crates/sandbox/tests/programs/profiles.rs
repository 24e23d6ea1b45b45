//! Every profile runs real programs, and none of them with any privilege.

use std::fs;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use fluffy_sandbox::{
    Config, End, Input, Job, Native, Outcome, Profile, Runtime as _, Stream, Template, Watcher,
};

use crate::scene::Scene;

/// Says when a job has printed something.
struct Tells(Sender<Vec<u8>>);

impl Watcher for Tells {
    fn printed(&self, _stream: Stream, bytes: &[u8]) {
        // Nobody has to listen.
        let _heard = self.0.send(bytes.to_vec());
    }
}

/// A guest may take longer to start here than it may to answer.
fn staying(template: Template) -> Config {
    Config::of(template).staying()
}

fn run(native: &Native, template: Template, job: Job) -> Outcome {
    native.run(staying(template), job, Arc::new(())).unwrap()
}

#[test]
fn lesson_l23_every_profile_runs_real_programs_without_any_privilege() {
    let scene = Scene::new(&[("file", "")]);
    let mut tried = Vec::new();
    for template in Template::ALL {
        tried.push(template.profile());
        let (theirs, mut ours) = std::io::pipe().unwrap();
        let program = "import sys, json, threading\nprint(json.dumps(sum(range(10))), flush=True)\n\
                       sys.stdin.readline()\nthread = threading.Thread(target=print, args=['done'])\n\
                       thread.start()\nthread.join()";
        let mut job = Job::new("/usr/bin/python3").args(["-c", program]);
        job.stdin = Input::From(theirs.into());
        let sandbox = scene.native.create(staying(template), job).unwrap();
        let (tells, printed) = channel();
        sandbox.start(Arc::new(Tells(tells))).unwrap();
        let Ok(line) = printed.recv() else {
            panic!("{template}: {:?}", sandbox.wait());
        };
        assert_eq!(line, b"45\n", "{template}");
        is_unprivileged(sandbox.inspect().pid.unwrap(), template);
        ours.write_all(b"\n").unwrap();
        let outcome = sandbox.wait().unwrap();
        assert_eq!(outcome.end, End::Exited(0), "{template}: {outcome:?}");
        assert_eq!(outcome.stdout.bytes, b"45\ndone\n", "{template}");
    }
    assert!(Profile::ALL.iter().all(|profile| tried.contains(profile)));
}

/// Looks at the job of a first process from outside.
fn is_unprivileged(first: u32, template: Template) {
    let children = fs::read_to_string(format!("/proc/{first}/task/{first}/children")).unwrap();
    let job = children.split_whitespace().next().unwrap();
    let status = fs::read_to_string(format!("/proc/{job}/status")).unwrap();
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(value("Name:"), ["python3"], "{template}");
    for name in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        assert_eq!(value(name), ["0000000000000000"], "{template} {name}");
    }
    assert_eq!(value("NoNewPrivs:"), ["1"], "{template}");
    assert_eq!(value("Seccomp:"), ["2"], "{template}");
    for name in ["Uid:", "Gid:"] {
        assert!(value(name).iter().all(|id| id != "0"), "{template}: {status}");
    }
    let first = fs::read_to_string(format!("/proc/{first}/status")).unwrap();
    let uid = first.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    assert!(uid.split_whitespace().all(|id| id != "0"), "{template}: {first}");
}

#[test]
fn the_strict_profile_computes_and_starts_no_other_process() {
    let scene = Scene::new(&[("file", "")]);
    let python = |program: &str| Job::new("/usr/bin/python3").args(["-c", program]);
    let works = "import json, math, re, threading\n\
                 print(re.sub('a', 'b', 'banana'), math.isqrt(10 ** 20))";
    let refused = [
        ("fork", "import os; os.fork()"),
        ("spawn", "import subprocess; subprocess.run(['/bin/true'])"),
        ("connect", "import socket; socket.socket(socket.AF_INET)"),
        ("connect over version six", "import socket; socket.socket(socket.AF_INET6)"),
    ];
    for template in [Template::PolicySandbox, Template::AiProvider] {
        let outcome = run(&scene.native, template, python(works));
        assert_eq!(outcome.stdout.bytes, b"bbnbnb 10000000000\n", "{outcome:?}");
        for (what, program) in refused {
            let outcome = run(&scene.native, template, python(program));
            let err = String::from_utf8_lossy(&outcome.stderr.bytes);
            assert_eq!(outcome.end, End::Exited(1), "{template}: {what}");
            assert!(err.contains("Error: [Errno 1]"), "{template}: {what}: {err}");
        }
    }
}

#[test]
fn the_strict_profile_runs_other_interpreters_as_well() {
    let scene = Scene::new(&[("file", "")]);
    let jobs = [
        Job::new("sh").args(["-c", "echo works"]),
        Job::new("perl").args(["-e", "print \"works\\n\""]),
        Job::new("node").args(["-e", "console.log('works')"]),
        Job::new("awk").args(["BEGIN { print \"works\" }"]),
    ];
    for job in jobs {
        let named = format!("{:?}", job.program);
        let outcome = run(&scene.native, Template::AiProvider, job);
        assert_eq!(outcome.stdout.bytes, b"works\n", "{named}: {outcome:?}");
    }
}
