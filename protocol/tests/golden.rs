//! The bytes of every message, written down beside the tests (vectors/*.hex): they change only with the version (spec
//! 4.7). `BLESS=1` rewrites the files; a changed line in a diff is a changed wire.

mod samples;

use std::fmt::{Debug, Write};
use std::path::PathBuf;

use bincode::{Decode, Encode};
use protocol::wire::{self, SERVER_DECODED_BYTES_MAX};

#[test]
fn client_messages() {
    check("client", &samples::client());
}

#[test]
fn server_messages() {
    check("server", &samples::server());
}

#[test]
fn origins() {
    check("origin", &samples::origins());
}

#[test]
fn bundles() {
    check("bundle", &samples::bundles());
}

#[test]
fn examples_of_the_documentation_are_vectors() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let document = std::fs::read_to_string(root.join("../docs/PROTOCOL.md")).expect("the documentation");
    let vectors: String = ["client", "server"]
        .map(|file| std::fs::read_to_string(root.join("vectors").join(format!("{file}.hex"))).expect(file))
        .concat();
    let examples: Vec<&str> = document
        .split("\n```\n")
        .skip(1)
        .step_by(2)
        .filter(|block| block.contains(" = ") && block.lines().count() == 1)
        .collect();
    // Each kind of message of a handshake and what follows it.
    for name in [
        "Hello",
        "Command",
        "Digest",
        "Ping",
        "SetView",
        "Reject",
        "Welcome",
        "Clock",
        "Definition",
        "Snapshot",
        "Turn",
        "State",
        "PackedState",
        "Accepted",
        "Refused",
        "Event",
        "Close",
    ] {
        let is_of = |example: &&str| {
            example
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with([' ', ',']))
        };
        assert!(examples.iter().any(is_of), "no example of {name}");
    }
    for example in examples {
        assert!(
            vectors.lines().any(|line| line == example),
            "no vector: {example}"
        );
    }
}

#[test]
fn codes_of_the_documentation_are_the_ones_known() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/PROTOCOL.md");
    let document = std::fs::read_to_string(path).expect("the documentation");
    for (code, name) in protocol::Code::KNOWN.iter().filter(|(code, _)| code.0 > 0) {
        assert!(
            document.contains(&format!(" {} {name} ", code.0)),
            "{code} is not documented"
        );
    }
}

/// A file has a line for each sample: its name, `=`, its bytes in hexadecimal.
fn check<T: Encode + Decode<()> + PartialEq + Debug>(file: &str, samples: &[(String, T)]) {
    let mut lines = String::new();
    for (name, sample) in samples {
        let bytes = wire::encode(sample);
        let decoded = wire::decode::<T, SERVER_DECODED_BYTES_MAX>(&bytes).expect(name);
        assert_eq!(&decoded, sample, "{name}");
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(lines, "{name} = {hex}").expect("memory takes every line");
    }
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("vectors")
        .join(format!("{file}.hex"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &lines).expect("the vectors can be written");
    }
    let golden = std::fs::read_to_string(&path).expect("the vectors can be read (BLESS=1 writes them)");
    for (line, expected) in lines.lines().zip(golden.lines()) {
        assert_eq!(line, expected, "{}: the wire has changed", path.display());
    }
    assert_eq!(lines, golden, "{}: samples added or removed", path.display());
}
