//! A link that is dead without a word: the connection is over in its time, and its session goes on by its secret.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use protocol::{Code, Hello};
use tempfile::tempdir;

use super::player::Player;
use super::process::Process;
use super::{is_exhaustive, last_code};
use crate::harness::{Bots, Daemon, HANG, LOCKSTEPD};
use crate::peer::{Peer, hello, without_definition};
use crate::serve::{ANY_PORT, check_bots};

/// A slot is free again after so many seconds: 15 of silence, the last look, and up to one for each look of ours.
const SECONDS_MAX: usize = 17;

/// Between somebody and the daemon, until it falls silent: from then on it reads nothing, sends nothing and closes nothing.
struct Link {
    address: SocketAddr,
    silent: Sender<()>,
    /// The daemon's side of it, once it is silent, and what has come from there.
    far_end: Receiver<(TcpStream, Vec<u8>)>,
}

impl Link {
    fn to(daemon: SocketAddr) -> Self {
        let listener = TcpListener::bind(ANY_PORT).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (silent, falls_silent) = mpsc::channel();
        let (far, far_end) = mpsc::channel();
        thread::spawn(move || {
            let (near, _) = listener.accept().expect("somebody comes");
            let away = TcpStream::connect(daemon).expect("the daemon listens");
            let copy = |stream: &TcpStream| stream.try_clone().expect("a descriptor");
            let (from, to, always) = (copy(&near), copy(&away), mpsc::channel::<()>());
            thread::spawn(move || pass(from, to, &always.1));
            let passed = pass(copy(&away), copy(&near), &falls_silent);
            far.send((away, passed)).expect("the test waits for it");
            // Nothing is closed.
            loop {
                thread::park();
            }
        });
        Self {
            address,
            silent,
            far_end,
        }
    }
}

/// Passes on what comes until told not to; all that came.
fn pass(mut from: TcpStream, mut to: TcpStream, until: &Receiver<()>) -> Vec<u8> {
    let (mut passed, mut bytes) = (Vec::new(), [0; 4096]);
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        passed.extend(&bytes[..read]);
        if to.write_all(&bytes[..read]).is_err() || until.try_recv().is_ok() {
            break;
        }
    }
    passed
}

#[test]
fn a_silent_link_is_given_up_and_its_session_goes_on() {
    let data = tempdir().expect("a folder");
    let daemon = Daemon::start(data.path(), ANY_PORT, &["--tick-rate", "10"]);
    let process = Process::new(daemon.process());
    let player = Player::join(daemon.address, "Ann");
    let descriptors = process.descriptors();
    let link = Link::to(daemon.address);
    let bob = Peer::join(link.address, without_definition(hello("Bob")));
    assert_eq!(process.descriptors(), descriptors + 1);
    link.silent.send(()).expect("it passes on");
    let (mut far_end, mut bytes) = link
        .far_end
        .recv_timeout(HANG)
        .expect("it falls silent with the next turn");
    given_up(&process, &player, descriptors);
    // The link read nothing; what lies in it tells why.
    far_end.read_to_end(&mut bytes).expect("the daemon has closed it");
    assert_eq!(last_code(&bytes), Some(Code::CLOSE_IDLE));
    let back = Hello {
        resume: Some(bob.resume(0, 0)),
        ..without_definition(hello("Bob"))
    };
    let again = Peer::join(daemon.address, back);
    assert_eq!(again.welcome.characters, bob.welcome.characters);
    assert!(player.finish() > 0);
    daemon.terminate();
}

/// Waits until the daemon holds no more than this.
fn given_up(process: &Process, player: &Player, descriptors: usize) {
    let mut seconds = 0;
    while process.descriptors() > descriptors {
        player.wait_for(10);
        seconds += 1;
    }
    println!("given up within {seconds} s");
    assert!(!is_exhaustive() || seconds <= SECONDS_MAX, "{seconds} s");
}

/// Two ends of a cable in namespaces of their own; it needs root and `ip`.
struct Cable {
    namespace: String,
    device: String,
}

impl Cable {
    fn new() -> Self {
        let number = std::process::id();
        let (namespace, device) = (format!("lockstepd-{number}"), format!("lsd{number}"));
        let cable = Self { namespace, device };
        let Self { namespace, device } = &cable;
        ip(&["netns", "add", namespace]);
        ip(&[
            "link", "add", device, "type", "veth", "peer", "name", "far", "netns", namespace,
        ]);
        ip(&["address", "add", "198.51.100.1/30", "dev", device]);
        ip(&["link", "set", device, "up"]);
        ip(&["-n", namespace, "address", "add", "198.51.100.2/30", "dev", "far"]);
        ip(&["-n", namespace, "link", "set", "far", "up"]);
        cable
    }

    fn set(&self, state: &str) {
        ip(&["link", "set", &self.device, state]);
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        // The cable goes with it.
        ip(&["netns", "delete", &self.namespace]);
    }
}

fn ip(arguments: &[&str]) {
    let status = Command::new("ip").args(arguments).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "ip {arguments:?}: it needs root"
    );
}

#[test]
fn a_cable_that_is_cut_is_given_up_and_its_session_goes_on() {
    if !is_exhaustive() {
        eprintln!("not run: it needs root and a network namespace; LOCKSTEPD_EXHAUSTIVE=1 asks for it");
        return;
    }
    let (data, cable) = (tempdir().expect("a folder"), Cable::new());
    let flags = ["--tick-rate", "10", "--insecure"];
    let daemon = Daemon::start(data.path(), "198.51.100.1:0", &flags);
    let process = Process::new(daemon.process());
    let player = Player::join(daemon.address, "Ann");
    let descriptors = process.descriptors();
    let connect = daemon.address.to_string();
    let mut bot = Command::new("ip");
    bot.args([
        "netns",
        "exec",
        &cable.namespace,
        LOCKSTEPD,
        "bot",
        "--json",
        "--connect",
        &connect,
    ]);
    let bot = Bots::launch(bot.args(["--seconds", "45", "--rate", "0"]));
    while process.descriptors() == descriptors {
        player.turn();
    }
    cable.set("down");
    given_up(&process, &player, descriptors);
    cable.set("up");
    let summary = check_bots(bot.finish(), 1);
    assert_eq!(
        (&summary["resumes"], &summary["rejoins"]),
        (&1.into(), &0.into()),
        "{summary:#}"
    );
    assert!(player.finish() > 0);
    daemon.terminate();
}
