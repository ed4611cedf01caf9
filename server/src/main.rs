//! The lockstepd binary: everything is in the library, so that tests and fuzz targets reach it, too.

use std::process::ExitCode;

fn main() -> ExitCode {
    lockstepd::main()
}
