//! Every input that the fuzz targets begin with, and every one that ever found something, without libFuzzer.

#[allow(unreachable_pub)] // a library of its own there
#[path = "../fuzz/src/lib.rs"]
mod targets;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

type Target = fn(&[u8]);

/// All targets under the names of their folders in `fuzz/corpus` and `fuzz/regressions`.
const TARGETS: [(&str, Target); 8] = [
    ("frame", targets::frame),
    ("message", targets::message),
    ("handshake", targets::handshake),
    ("ticket", targets::ticket),
    ("snapshot", targets::snapshot),
    ("journal", lockstepd::fuzzing::journal),
    ("map", targets::map),
    ("location", targets::location),
];

#[test]
fn seeds_and_former_findings_hold() {
    let mut failed = Vec::new();
    for (name, target) in TARGETS {
        let inputs = inputs(name);
        assert!(!inputs.is_empty(), "no seeds for {name}");
        failed.extend(inputs.into_iter().filter(|path| !holds(target, path)));
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

fn holds(target: Target, path: &Path) -> bool {
    let input = fs::read(path).expect("readable");
    catch_unwind(AssertUnwindSafe(|| targets::check(target, &input))).is_ok()
}

/// Seeds and former findings of a target, by name.
fn inputs(target: &str) -> Vec<PathBuf> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    let mut paths = Vec::new();
    for folder in ["corpus", "regressions"] {
        if let Ok(entries) = fs::read_dir(fuzz.join(folder).join(target)) {
            paths.extend(entries.map(|entry| entry.expect("readable").path()));
        }
    }
    paths.sort();
    paths
}
