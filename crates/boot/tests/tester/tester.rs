//! What tests run as the kernel: it lives one life after the other, as told. And a bootstrap to be killed.
//!
//! `boot-tester boot ARGUMENTS…` is the bootstrap. `boot-tester live SOCKET LIVES LIFE…` is the kernel: it
//! adds a line with its process and its group to the file LIVES and lives the LIFE of that number:
//!
//! - `serve`: answers; the messages `end N` and `abort` end it;
//! - `once`: answers once and ends;
//! - `wait`: serves once somebody has connected to `SOCKET.go`;
//! - `mute`, `absent`: accepts and never answers; does not even listen;
//! - `babble=N`: answers with what is no answer;
//! - `exit=N`, `abort`, `print=FILE,N`: ends, the last after copying the file to its log.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and this one plays a process that ends itself"
)]

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process;

use fluffy_boot::Trouble;

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next().unwrap().to_str().unwrap() {
        "boot" => {
            let boot = fluffy_boot::parse(arguments);
            let code = match boot {
                Ok(boot) => fluffy_boot::run(&boot, &mut io::stdout().lock()),
                Err(trouble) => {
                    io::stdout().write_all(trouble.to_line().as_bytes()).unwrap();
                    trouble.code
                }
            };
            process::exit(code.into());
        }
        "live" => {
            let words: Vec<String> = arguments.map(|word| word.into_string().unwrap()).collect();
            let [socket, lives, all @ ..] = words.as_slice() else { panic!("{words:?}") };
            let number = count(lives);
            live(socket, all.get(number).or(all.last()).unwrap());
        }
        other => panic!("`{other}` is not what this does"),
    }
}

/// Which life this is, from 0.
fn count(lives: &str) -> usize {
    let before = fs::read_to_string(lives).unwrap_or_default().lines().count();
    // The name of the program has no space, so the group is the fifth word.
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let group = stat.split(' ').nth(4).unwrap();
    let mut lives = OpenOptions::new().append(true).open(lives).unwrap();
    lives.write_all(format!("{} {group}\n", process::id()).as_bytes()).unwrap();
    before
}

fn live(socket: &str, life: &str) {
    let (life, detail) = life.split_once('=').unwrap_or((life, ""));
    match life {
        "serve" => serve(&listen(socket), pong),
        "wait" => {
            drop(listen(&format!("{socket}.go")).accept().unwrap());
            serve(&listen(socket), pong);
        }
        "once" => serve(&listen(socket), |stream| {
            pong(stream);
            process::exit(0);
        }),
        "mute" => serve(&listen(socket), |_| ()),
        "babble" => serve(&listen(socket), |stream| babble(stream, detail.parse().unwrap())),
        "absent" => drop(io::stdin().read_to_end(&mut Vec::new())),
        "exit" => process::exit(detail.parse().unwrap()),
        "abort" => process::abort(),
        "print" => {
            let (file, code) = detail.split_once(',').unwrap();
            io::stderr().write_all(&fs::read(file).unwrap()).unwrap();
            process::exit(code.parse().unwrap());
        }
        other => panic!("`{other}` is not a life"),
    }
}

/// Listens, and ends with the standard input as a kernel does.
fn listen(socket: &str) -> UnixListener {
    std::thread::spawn(|| {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        process::exit(3);
    });
    let _ = fs::remove_file(socket);
    UnixListener::bind(socket).unwrap_or_else(|error| {
        let trouble = Trouble {
            code: 2,
            what: "cannot listen".to_owned(),
            why: format!("`{socket}`: {error}"),
            fix: "move it away".to_owned(),
        };
        io::stderr().write_all(format!("{}\n", trouble.to_line()).as_bytes()).unwrap();
        process::exit(2)
    })
}

/// Takes one message of each connection, and keeps the connection.
fn serve(listener: &UnixListener, answer: impl Fn(&mut UnixStream)) {
    let mut kept = Vec::new();
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let message = message(&mut stream).unwrap_or_default();
        if let Some(code) = message.strip_prefix("end ") {
            process::exit(code.parse().unwrap());
        }
        match message.as_str() {
            "abort" => process::abort(),
            r#"{"id":1,"type":"request","method":"health.ping","params":{}}"# => {
                answer(&mut stream);
            }
            _ => {}
        }
        kept.push(stream);
    }
}

fn message(stream: &mut UnixStream) -> io::Result<String> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut bytes = vec![0; u32::from_be_bytes(length).try_into().unwrap()];
    stream.read_exact(&mut bytes)?;
    Ok(String::from_utf8(bytes).unwrap())
}

fn pong(stream: &mut UnixStream) {
    let answer = br#"{"id":1,"type":"response","result":{"pong":true}}"#;
    let length = u32::try_from(answer.len()).unwrap().to_be_bytes();
    let _ = stream.write_all(&[&length, answer.as_slice()].concat());
}

/// Too long, empty, cut off, not the answer, not even text.
fn babble(stream: &mut UnixStream, number: usize) {
    let answers: [&[u8]; 5] = [
        b"\xff\xff\xff\xff",
        b"\0\0\0\0\"pong\":true",
        b"\0\0",
        b"\0\0\0\x0e{\"pong\":false}",
        b"\0\0\0\x02\xff\xfe",
    ];
    let _ = stream.write_all(answers.get(number).unwrap());
    let _ = stream.shutdown(std::net::Shutdown::Both);
}
