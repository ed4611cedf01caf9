//! The journal is inside the daemon, which would take longer to build than all the targets: it is built here by itself.
#![no_main]
#![allow(dead_code, unused_imports, unreachable_pub)]

#[path = "../../server/src/exit.rs"]
mod exit;
#[path = "../../server/src/journal/mod.rs"]
mod journal;

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::check(journal::fuzzing::journal, input));
