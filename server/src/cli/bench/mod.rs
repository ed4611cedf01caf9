//! `lockstepd bench journal|nav|scen|tick`: measurements. Times never decide the exit status; wrong answers do.

mod exact;
mod journal;
mod nav;
pub(super) mod scen;
mod tick;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use comfy_table::{CellAlignment, LineStyle, Table, TableStyle, presets};

/// Measure planning and ticking
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BenchArguments {
    #[command(subcommand)]
    measurement: Measurement,
}

const EXAMPLES: &str = "\
Examples:
  lockstepd bench nav
  lockstepd bench scen Berlin_1_256.map.scen
  lockstepd bench tick --characters 1000 --map Berlin_1_256.map
  lockstepd bench journal

Build with --release before you believe a time.";

#[derive(Subcommand)]
enum Measurement {
    Journal(journal::JournalArguments),
    Nav(nav::NavArguments),
    Scen(scen::ScenArguments),
    Tick(tick::TickArguments),
}

/// Measures and prints a table, or JSON.
///
/// # Errors
/// Bad input; IO.
pub(crate) fn run(arguments: &BenchArguments) -> anyhow::Result<ExitCode> {
    if cfg!(debug_assertions) {
        super::output::complain(
            "note: built without optimisation; use --release for times that mean something",
        );
    }
    match &arguments.measurement {
        Measurement::Journal(arguments) => journal::run(arguments),
        Measurement::Nav(arguments) => nav::run(arguments),
        Measurement::Scen(arguments) => scen::run(arguments),
        Measurement::Tick(arguments) => tick::run(arguments),
    }
}

/// Columns with a line under their names.
const STYLE: TableStyle = presets::NOTHING.header_separator(LineStyle::new(' ', '─', '─', ' '));

/// A table whose first `left` columns are text and whose others are numbers.
fn table(header: &[&str], left: usize) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE).set_header(header);
    for column in table.column_iter_mut().skip(left) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
