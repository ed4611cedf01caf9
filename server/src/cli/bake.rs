//! `lockstepd bake MAP.json -o GRID.txt`: the walkable grid as text (spec 2.2).

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;

use super::map::read_grid;
use super::output::Output;
use crate::exit::{Status, WithStatus};

/// Write the walkable grid of a map as text
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BakeArguments {
    /// Map: polygons (.json), baked grid (.txt) or MovingAI octile map (.map)
    map: PathBuf,
    /// Where to; without it or with `-`: stdout
    #[arg(short, long, value_name = "GRID.txt")]
    output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  lockstepd bake town.json -o town.txt
  lockstepd bake Berlin_1_256.map | head -12

The baked grid plans the same paths as the map; its areas are gone, so none can be opened or closed.";

/// Bakes.
///
/// # Errors
/// Bad input; IO.
pub(crate) fn run(arguments: &BakeArguments) -> anyhow::Result<ExitCode> {
    let text = read_grid(&arguments.map)?.map().to_baked().to_text();
    match arguments.output.as_deref() {
        None => print(&text)?,
        Some(path) if path == Path::new("-") => print(&text)?,
        Some(path) => std::fs::write(path, text)
            .with_context(|| path.display().to_string())
            .with_status(Status::Io)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut output = Output::stdout();
    output.bytes(text.as_bytes())?;
    output.finish()
}
