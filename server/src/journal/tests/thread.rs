//! What is let go of, when, and what happens when the disk does not take it.

use std::fs::File;
use std::path::Path;
use std::sync::mpsc;

use protocol::message::Short;

use super::memory_folder;
use crate::journal::record::{CloseReason, Note, Record};
use crate::journal::segment::{Chain, Frames, Header, Kind};
use crate::journal::thread::JournalThread;
use crate::journal::writer::{Failure, Writer};

fn header() -> Header {
    Header {
        tick_rate: 10,
        ruleset: 1,
        run: [1; 16],
        segment: 0,
        first_tick: 0,
        definition: [2; 32],
        chain: Chain::default(),
        ruleset_hash: 3,
    }
}

fn note(tick: u64) -> Record {
    Record::Note(Note {
        tick,
        unix_ms: 0,
        actor: Short::cut("test"),
        text: sim::bounded::Text::cut("said"),
    })
}

/// Kinds of the records in a file.
fn kinds(path: &Path) -> Vec<Kind> {
    let file = File::open(path).expect("it is there");
    let (_, mut frames) = Frames::open(file).expect("readable").expect("a header");
    let mut kinds = Vec::new();
    while let Some(frame) = frames.next().expect("whole records") {
        kinds.push(frame.kind);
    }
    kinds
}

#[test]
fn what_waits_is_let_go_in_order_once_it_is_in_the_file() {
    let folder = memory_folder();
    let path = folder.path().join("segment");
    let writer = Writer::begin(
        File::create(&path).expect("a file"),
        path.clone(),
        &header(),
        None,
    );
    let (released, releases) = mpsc::channel();
    let seen = path.clone();
    let release = move |batch: usize| {
        let written = kinds(&seen).len();
        assert!(released.send((batch, written)).is_ok());
    };
    let journal = JournalThread::spawn(writer, release, |failure| panic!("{failure}")).expect("a thread");
    for batch in 0..100 {
        let records = vec![note(batch); batch as usize % 3];
        journal.append(records, batch as usize).expect("open");
    }
    journal.close(100, 0, CloseReason::Stopped).expect("closed");
    let mut expected = 0;
    for (index, (batch, written)) in releases.iter().enumerate() {
        expected += batch % 3;
        assert_eq!(batch, index);
        assert!(written >= expected, "batch {batch}: {written} of {expected}");
    }
    let kinds = kinds(&path);
    assert_eq!((kinds.len(), kinds.last()), (expected + 1, Some(&Kind::Close)));
}

#[test]
fn after_a_failed_write_nothing_is_let_go() {
    let path = Path::new("/dev/full");
    let Ok(file) = File::options().write(true).open(path) else {
        return; // not every system has it
    };
    let writer = Writer::begin(file, path.to_owned(), &header(), None);
    let (failed, failures) = mpsc::channel();
    let fail = move |failure: &Failure| assert!(failed.send(failure.clone()).is_ok());
    let journal = JournalThread::spawn(writer, |()| panic!("let go"), fail).expect("a thread");
    journal.append(vec![note(0)], ()).expect("open");
    assert!(matches!(failures.recv(), Ok(Failure::Write { .. })));
    while let Ok(()) = journal.append(Vec::new(), ()) {
        std::thread::yield_now(); // told before its queue is gone
    }
    assert!(matches!(
        journal.append(Vec::new(), ()),
        Err(Failure::Write { .. })
    ));
    assert!(matches!(
        journal.close(1, 0, CloseReason::Stopped),
        Err(Failure::Write { .. })
    ));
}

#[test]
fn dropping_the_handle_leaves_no_close_record() {
    let folder = memory_folder();
    let path = folder.path().join("segment");
    let writer = Writer::begin(
        File::create(&path).expect("a file"),
        path.clone(),
        &header(),
        None,
    );
    let journal = JournalThread::spawn(writer, |()| {}, |failure| panic!("{failure}")).expect("a thread");
    journal.append(vec![note(0)], ()).expect("open");
    drop(journal);
    assert_eq!(kinds(&path), [Kind::Note]);
}
