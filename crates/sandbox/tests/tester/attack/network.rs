//! Speaking to anybody.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixStream};
use std::time::Duration;

use super::{Report, pairs};
use crate::listen::Ear;
use crate::sys::{call, descriptor};

pub(super) const ATTACKS: &[(&str, super::Attack)] = &[
    ("connect", connect),
    ("datagram", datagram),
    ("lookup", lookup),
    ("families", families),
    ("raw", raw),
    ("unix", unix),
    ("serve", serve),
    ("visit", visit),
];

const PATIENCE: Duration = Duration::from_secs(1);

/// Connects to each address.
fn connect(args: &[&str], report: &mut Report) {
    for (label, address) in pairs(args) {
        let address: SocketAddr = address.parse().unwrap();
        report.tried(label, TcpStream::connect_timeout(&address, PATIENCE));
    }
}

/// Sends a question to each address, and waits a moment for anything to come back.
fn datagram(args: &[&str], report: &mut Report) {
    for (label, address) in pairs(args) {
        report.tried(label, ask(address.parse().unwrap()));
    }
}

fn ask(address: SocketAddr) -> io::Result<usize> {
    let socket = UdpSocket::bind(if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
    socket.connect(address)?;
    socket.set_read_timeout(Some(PATIENCE / 4))?;
    // A question for the address of stolen.example.com.
    let mut question = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in ["stolen", "example", "com", ""] {
        question.push(u8::try_from(label.len()).unwrap());
        question.extend(label.as_bytes());
    }
    question.extend([0, 1, 0, 1]);
    socket.send(&question)?;
    socket.recv(&mut [0; 512])
}

/// Asks the system's resolver, which knows more ways than one.
fn lookup(args: &[&str], report: &mut Report) {
    for (label, name) in pairs(args) {
        let answer = (name, 80).to_socket_addrs().map(Iterator::count);
        report.said(label, if answer.is_ok_and(|count| count > 0) { "found" } else { "not found" });
    }
}

/// Which kinds of socket there are beside those of files and of the internet.
fn families(_args: &[&str], report: &mut Report) {
    const USUAL: [i32; 3] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];
    let mut others: Vec<String> = Vec::new();
    let mut answers: Vec<String> = Vec::new();
    for family in (0..64).filter(|family| !USUAL.contains(family)) {
        for kind in 1..=10 {
            match descriptor(call!(libc::SYS_socket, family, kind, 0)) {
                Ok(_) => others.push(format!("{family}:{kind}")),
                Err(error) => answers.push(crate::sys::name(&error)),
            }
        }
    }
    answers.sort();
    answers.dedup();
    report.said("other families", if others.is_empty() { "none".into() } else { others.join(" ") });
    report.said("answers", answers.join(" "));
    for (label, family, kind) in [
        ("netlink", libc::AF_NETLINK, libc::SOCK_RAW),
        ("packet", libc::AF_PACKET, libc::SOCK_RAW),
        ("vsock", libc::AF_VSOCK, libc::SOCK_STREAM),
    ] {
        report.tried(label, descriptor(call!(libc::SYS_socket, family, kind, 0)));
    }
    let mut pair = [0_u8; 8];
    report.tried(
        "a pair of another family",
        call!(libc::SYS_socketpair, libc::AF_TIPC, 1, 0, &mut pair),
    );
}

/// Packets made by hand.
fn raw(_args: &[&str], report: &mut Report) {
    for (label, family, kind, protocol) in [
        ("icmp", libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP),
        ("any", libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_RAW),
        ("icmp 6", libc::AF_INET6, libc::SOCK_RAW, libc::IPPROTO_ICMPV6),
        ("hidden in flags", libc::AF_INET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::IPPROTO_TCP),
    ] {
        report.tried(label, descriptor(call!(libc::SYS_socket, family, kind, protocol)));
    }
}

/// Connects to sockets that have a path, or, with `@`, a name.
fn unix(args: &[&str], report: &mut Report) {
    for (label, address) in pairs(args) {
        report.tried(label, connect_unix(address));
    }
}

fn connect_unix(address: &str) -> io::Result<UnixStream> {
    match address.strip_prefix('@') {
        Some(name) => UnixStream::connect_addr(&UnixAddr::from_abstract_name(name)?),
        None => UnixStream::connect(address),
    }
}

const PORT: &str = "127.0.0.1:47115";
const NAME: &str = "fluffy-attack";
const KEY: i32 = 0x666c_7566;

/// Offers everything by which two sandboxes could meet, and stays.
fn serve(_args: &[&str], _report: &mut Report) {
    let _ears: Vec<Ear> = [format!("tcp:{PORT}"), format!("abstract:{NAME}")]
        .iter()
        .map(|at| Ear::open(at).unwrap())
        .collect();
    std::fs::write("/dev/shm/fluffy-attack", "x").unwrap();
    std::fs::write("/tmp/fluffy-attack", "x").unwrap();
    call!(libc::SYS_shmget, KEY, 4096, libc::IPC_CREAT | 0o666).unwrap();
    call!(
        libc::SYS_mq_open,
        c"fluffy-attack",
        libc::O_CREAT | libc::O_RDWR,
        0o666,
        crate::sys::Arg::Null
    )
    .unwrap();
    println!("serving");
    loop {
        crate::sys::pause();
    }
}

/// Looks for the above.
fn visit(_args: &[&str], report: &mut Report) {
    report.tried("port", TcpStream::connect_timeout(&PORT.parse().unwrap(), PATIENCE));
    report.tried("name", connect_unix(&format!("@{NAME}")));
    report.tried("shared memory file", std::fs::read("/dev/shm/fluffy-attack"));
    report.tried("temporary file", std::fs::read("/tmp/fluffy-attack"));
    report.tried("shared memory", call!(libc::SYS_shmget, KEY, 4096, 0));
    report.tried(
        "message queue",
        descriptor(call!(libc::SYS_mq_open, c"fluffy-attack", libc::O_RDWR, 0)),
    );
}
