//! A map file as the commands use it: its grid with a planner, and the outlines to draw.

use std::path::Path;

use nav::{GridPlanner, Problems};

use super::input;
use super::picture::Outline;

/// A map that has been read.
pub(crate) struct MapInput {
    /// Answers questions; `planner.grid()` is the grid.
    pub(crate) planner: GridPlanner,
    /// Of a polygon map.
    pub(crate) areas: Vec<Outline>,
    /// Of a polygon map.
    pub(crate) obstacles: Vec<Outline>,
}

impl MapInput {
    /// Reads a map file.
    ///
    /// # Errors
    /// Bad input: it cannot be read; every broken rule.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let bytes = input::read(path, input::MAP_BYTES_MAX)?;
        Ok(Self::parse(&input::name(path), &bytes)?)
    }

    /// Reads the bytes of a map file; the ending of its name says what it is.
    ///
    /// # Errors
    /// Every broken rule.
    pub(crate) fn parse(file: &str, _bytes: &[u8]) -> Result<Self, Problems> {
        Err(Problems::one(file, "", "not readable yet"))
    }
}
