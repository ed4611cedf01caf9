//! The power is cut under a real file system: ext4 on a loop device, whose image is copied while the daemon stands still.
//! The copy, mounted, is what a disk holds after a power cut, with what ext4 made of it: its journal is played back, and
//! bytes that were never synced are not there.
//!
//! `LOCKSTEPD_LOOP_IMAGE=1` asks for it; it needs root, loop devices and `mkfs.ext4`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use protocol::ServerMessage;
use protocol::message::Feed;

use super::journal::Journal;
use super::mount::{Mount, run};
use super::told::{Promise, Told};
use super::yard::{Crowd, Yard};
use crate::harness::Daemon;
use crate::peer::{Peer, watcher};

const IMAGE_BYTES: u64 = 16 << 20;
/// Power cuts for each way of keeping.
const CUTS: u64 = 12;

/// Turns that were told and turns that are there after one cut.
struct Turns {
    told: usize,
    kept: usize,
}

/// Cuts the power once, when a client has seen so many turns.
///
/// # Errors
/// There can be no such disk here, and why.
fn cut(durability: &str, turns: u64, promise: Promise) -> Result<Turns, String> {
    let yard = Yard::new(&["--durability", durability]);
    let (image, copy, after) = (yard.path("image"), yard.path("copy"), yard.path("after"));
    let file = fs::File::create(&image).and_then(|file| file.set_len(IMAGE_BYTES));
    file.map_err(|error| error.to_string())?;
    run(Command::new("mkfs.ext4").arg("-q").arg(&image))?;
    let disk = Mount::of_image(&image, &yard.data())?;
    let daemon = Daemon::launch(&mut yard.serve(&yard.data(), None)).expect("it starts");
    let crowd = Crowd::join(daemon.address);
    let mut witness = Peer::join(daemon.address, watcher(Feed::Lockstep)).peer;
    for _ in 0..turns {
        witness.turn();
    }
    daemon.signal("STOP");
    wait_until_stopped(daemon.process());
    copy_at_rest(&image, &copy);
    daemon.kill();
    let mut told = crowd.told();
    told.push(rest(witness));
    let told = Told::together(&told);
    drop(disk);

    fs::create_dir(&after).expect("a folder");
    let _disk = Mount::of_image(&copy, &after)?;
    let output = yard.recover(&after);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{durability}, {turns} turns: {said}"
    );
    let journal = Journal::read(&after);
    told.check(&journal, promise);
    Ok(Turns {
        told: told
            .turns
            .last_key_value()
            .map_or(0, |(tick, _)| *tick as usize + 1),
        // The start after the cut has stepped one more.
        kept: journal.turns.len() - 1,
    })
}

/// What was still on its way to a client when its daemon was killed.
fn rest(mut peer: Peer) -> Told {
    let mut told = Told::default();
    while let Some(message) = peer.next() {
        // What a session was told before is not here, so that of its answers nothing can be said.
        if matches!(message, ServerMessage::Turn(_)) {
            told.hear(&message);
        }
    }
    told
}

fn wait_until_stopped(process: u32) {
    let is_stopped = || {
        let tasks = fs::read_dir(format!("/proc/{process}/task")).expect("it is there");
        tasks.flatten().all(|task| {
            let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            let state = stat.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
            state == Some(Some('T'))
        })
    };
    while !is_stopped() {
        thread::yield_now();
    }
}

/// Copies an image to which nothing is written from one reading to the next: as it is at one moment.
fn copy_at_rest(image: &Path, copy: &Path) {
    let read = || fs::read(image).expect("the image");
    let mut bytes = read();
    loop {
        let again = read();
        if again == bytes {
            break;
        }
        bytes = again;
    }
    fs::write(copy, bytes).expect("room");
}

fn check_durability(durability: &str, promise: Promise) {
    if std::env::var_os("LOCKSTEPD_LOOP_IMAGE").is_none() {
        eprintln!("{durability}: not tried: LOCKSTEPD_LOOP_IMAGE=1 cuts the power under a real file system");
        return;
    }
    let mut sum = Turns { told: 0, kept: 0 };
    for number in 0..CUTS {
        match cut(durability, 1 + number * 23, promise) {
            Ok(turns) => {
                sum.told += turns.told;
                sum.kept += turns.kept;
            }
            Err(why) => {
                eprintln!("{durability}: not tried, for want of a disk in a file: {why}");
                return;
            }
        }
    }
    let Turns { told, kept } = sum;
    eprintln!(
        "{durability}: {CUTS} power cuts of a mounted image, {told} turns told, {kept} there after the cuts"
    );
}

#[test]
fn with_tick_a_real_file_system_keeps_all_that_was_sent() {
    check_durability("tick", Promise::All);
}

#[test]
fn with_interval_a_real_file_system_keeps_every_accepted_command() {
    check_durability("interval", Promise::Accepted);
}

#[test]
fn with_os_a_real_file_system_leaves_no_damage() {
    check_durability("os", Promise::Nothing);
}
