//! The baked grid as text (spec 2.2): a header of `key value` lines and a row of `1` and `0` per z.

use std::fmt::Write;

use super::cells::Cells;
use super::raster::Frame;
use super::{CELLS_MAX, Grid, GridParameters};
use crate::geometry::GRID_REACH;
use crate::json::did_you_mean;
use crate::map_file::{CELL_SIZE, CLEARANCE};
use crate::{Fixed, GRID_ORIGIN_LIMIT, Point, Problems, WORLD_LIMIT};

/// Largest baked grid, bytes: 2²⁴ rows of one cell with CRLF, and a header.
pub const TEXT_BYTES_MAX: usize = 3 * CELLS_MAX + (1 << 16);

/// A grid without polygons: cells, and the numbers it was built with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BakedGrid {
    /// The numbers it was built with.
    pub parameters: GridParameters,
    /// The corner of least x and z.
    pub min: Point,
    /// Which cells are walkable.
    pub cells: Cells,
}

impl BakedGrid {
    /// Where its cells lie.
    pub fn frame(&self) -> Frame {
        Frame {
            min: self.min,
            width: self.cells.width(),
            depth: self.cells.depth(),
            cell_size: self.parameters.cell_size,
        }
    }

    /// The grid to search on.
    pub fn grid(&self) -> Grid {
        Grid::from_bits(self.parameters, self.min, &self.cells)
    }

    /// The file that [`parse`] reads back to the same grid; every line ends with LF.
    pub fn to_text(&self) -> String {
        let (width, depth) = (self.cells.width(), self.cells.depth());
        let mut text = String::with_capacity((width as usize + 1) * depth as usize + 200);
        let parameters = &self.parameters;
        let values: [(&str, &dyn std::fmt::Display); 9] = [
            ("cellSize", &parameters.cell_size),
            ("agentRadius", &parameters.agent_radius),
            ("objectPadding", &parameters.object_padding),
            ("boundaryPadding", &parameters.boundary_padding),
            ("floorY", &parameters.floor_y),
            ("minX", &self.min.x),
            ("minZ", &self.min.z),
            ("gridWidth", &width),
            ("gridDepth", &depth),
        ];
        for (key, value) in values {
            writeln!(text, "{key} {value}").expect("text takes everything");
        }
        for z in 0..depth {
            text.extend((0..width).map(|x| if self.cells.get(x, z) { '1' } else { '0' }));
            text.push('\n');
        }
        text
    }
}

/// Reads a baked grid.
///
/// # Errors
/// Every broken rule, with its line.
pub fn parse(file: &str, bytes: &[u8]) -> Result<BakedGrid, Problems> {
    if bytes.len() > TEXT_BYTES_MAX {
        let rule = format!("longer than {TEXT_BYTES_MAX} bytes");
        return Err(Problems::one(file, "", rule));
    }
    let mut problems = Problems::new();
    let mut lines = Lines::new(bytes);
    let Some(header) = Header::read(file, &mut lines, &mut problems) else {
        return Err(problems);
    };
    let mut cells = Cells::new(header.width, header.depth);
    let mut z = 0;
    for (line, text) in lines.by_ref() {
        if z == header.depth {
            let rule = format!("too many rows (gridDepth is {})", header.depth);
            problems.push(file, place(line), rule);
            break;
        }
        if let Some(rule) = read_row(text, z, &mut cells) {
            problems.push(file, place(line), rule);
        }
        z += 1;
    }
    if z < header.depth {
        let rule = format!("too few rows ({z} of {})", header.depth);
        problems.push(file, place(lines.after_last()), rule);
    }
    problems.or_else(|| BakedGrid {
        parameters: header.parameters,
        min: header.min,
        cells,
    })
}

/// The lines of a file that are not blank, each with its number from 1, without LF or CRLF.
#[derive(Clone)]
pub(super) struct Lines<'a> {
    rest: &'a [u8],
    number: u64,
}

impl<'a> Lines<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            number: 0,
        }
    }

    /// The number of the line after the last that was read.
    pub(super) fn after_last(&self) -> u64 {
        self.number + 1
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let end = self.rest.iter().position(|byte| *byte == b'\n');
            let (line, rest) = match end {
                Some(end) => (&self.rest[..end], &self.rest[end + 1..]),
                None => (self.rest, &[][..]),
            };
            self.rest = rest;
            self.number += 1;
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !line.trim_ascii().is_empty() {
                return Some((self.number, line));
            }
        }
        None
    }
}

/// `line 8`.
pub(super) fn place(line: u64) -> String {
    format!("line {line}")
}

/// `key value` with blanks between and around; a value may have further blanks inside.
pub(super) fn key_and_value(line: &[u8]) -> (String, String) {
    // Longer ones are wrong anyway and only shown.
    const SHOWN_MAX: usize = 80;
    let line = line.trim_ascii();
    let end = line
        .iter()
        .position(u8::is_ascii_whitespace)
        .unwrap_or(line.len());
    let shown = |part: &[u8]| {
        let part = &part[..part.len().min(SHOWN_MAX)];
        String::from_utf8_lossy(part).replace(|c: char| c.is_control(), "\u{fffd}")
    };
    (shown(&line[..end]), shown(line[end..].trim_ascii()))
}

/// A size in cells: digits.
pub(super) fn read_size(value: &str) -> Result<u32, String> {
    if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("not a number: {value:?}"));
    }
    match value.parse::<u32>() {
        Ok(0) => Err("a size of 0".to_owned()),
        Ok(size) if size as usize <= CELLS_MAX => Ok(size),
        _ => Err("more than 2^24 cells".to_owned()),
    }
}

/// Whether a grid of this place and size stays where numbers are exact; if not, the broken rule.
pub(super) fn check_extent(cell_size: Fixed, min: Point, width: u32, depth: u32) -> Option<String> {
    let far = |min: Fixed, cells: u32| min.wide() + i64::from(cells) * cell_size.wide();
    if u64::from(width) * u64::from(depth) > CELLS_MAX as u64 {
        Some(format!("more than 2^24 cells: {width} × {depth}"))
    } else if far(min.x, width) > GRID_REACH.wide() || far(min.z, depth) > GRID_REACH.wide() {
        Some(format!(
            "the grid reaches outside the world limit, past {GRID_REACH} m"
        ))
    } else {
        None
    }
}

struct Header {
    parameters: GridParameters,
    min: Point,
    width: u32,
    depth: u32,
}

const KEYS: [&str; 9] = [
    "cellSize",
    "agentRadius",
    "objectPadding",
    "boundaryPadding",
    "floorY",
    "minX",
    "minZ",
    "gridWidth",
    "gridDepth",
];

impl Header {
    /// The header, and `lines` at the first row; `None` if no row can be read with it.
    fn read(file: &str, lines: &mut Lines<'_>, problems: &mut Problems) -> Option<Self> {
        let mut header = Self {
            parameters: GridParameters::default(),
            min: Point::default(),
            width: 0,
            depth: 0,
        };
        let mut seen = [false; KEYS.len()];
        let mut size_line = 0;
        let mut sizes_are_wrong = false;
        let mut ahead = lines.clone();
        let mut row_line = None;
        while let Some((line, text)) = ahead.next() {
            // Keys are words; a row begins with a digit or is no row.
            if !text.trim_ascii_start()[0].is_ascii_alphabetic() {
                row_line = Some(line);
                break;
            }
            *lines = ahead.clone();
            let (key, value) = key_and_value(text);
            let Some(index) = KEYS.iter().position(|known| *known == key) else {
                let hint = did_you_mean(&key, KEYS.into_iter());
                problems.push(file, place(line), format!("unknown key {key}{hint}"));
                continue;
            };
            if seen[index] {
                problems.push(file, place(line), format!("repeated key {key}"));
                continue;
            }
            seen[index] = true;
            if key.starts_with("grid") {
                size_line = line;
            }
            if let Err(rule) = header.set(&key, &value) {
                sizes_are_wrong |= key.starts_with("grid");
                problems.push(file, place(line), format!("{key}: {rule}"));
            }
        }
        let row_line = row_line.unwrap_or(ahead.after_last());
        for (key, seen) in KEYS.iter().zip(seen).skip(KEYS.len() - 2) {
            if !seen {
                sizes_are_wrong = true;
                problems.push(file, place(row_line), format!("missing size {key}"));
            }
        }
        if sizes_are_wrong {
            return None;
        }
        let Self {
            parameters,
            min,
            width,
            depth,
        } = header;
        if let Some(rule) = check_extent(parameters.cell_size, min, width, depth) {
            problems.push(file, place(size_line), rule);
            return None;
        }
        Some(header)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let number = |range: std::ops::RangeInclusive<Fixed>| {
            let (min, max) = (*range.start(), *range.end());
            Fixed::parse_in(value, range).map_err(|error| match error {
                crate::FixedError::NotANumber => format!("not a number: {value:?}"),
                crate::FixedError::OutOfRange => format!("outside {min} to {max}"),
            })
        };
        let limit = |limit: Fixed| Fixed::from_raw(-limit.raw())..=limit;
        let parameters = &mut self.parameters;
        match key {
            "cellSize" => parameters.cell_size = number(CELL_SIZE)?,
            "agentRadius" => parameters.agent_radius = number(CLEARANCE)?,
            "objectPadding" => parameters.object_padding = number(CLEARANCE)?,
            "boundaryPadding" => parameters.boundary_padding = number(CLEARANCE)?,
            "floorY" => parameters.floor_y = number(limit(WORLD_LIMIT))?,
            "minX" => self.min.x = number(limit(GRID_ORIGIN_LIMIT))?,
            "minZ" => self.min.z = number(limit(GRID_ORIGIN_LIMIT))?,
            "gridWidth" => self.width = read_size(value)?,
            _ => self.depth = read_size(value)?,
        }
        Ok(())
    }
}

/// One row into the cells, or the broken rule.
fn read_row(text: &[u8], z: u32, cells: &mut Cells) -> Option<String> {
    if let Some(column) = text.iter().position(|byte| !matches!(byte, b'0' | b'1')) {
        let character = char::from(text[column]);
        return Some(format!(
            "another character than 1 and 0 ({character:?} in column {})",
            column + 1
        ));
    }
    let (length, width) = (text.len(), cells.width());
    if length != width as usize {
        let kind = if length < width as usize { "short" } else { "long" };
        return Some(format!("{kind} row ({length} cells of {width})"));
    }
    for (x, _) in text.iter().enumerate().filter(|(_, byte)| **byte == b'1') {
        cells.set(x as u32, z, true);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<String> = match parse("g.txt", text.as_bytes()) {
            Ok(_) => Vec::new(),
            Err(problems) => problems.as_slice().iter().map(|p| p.to_string()).collect(),
        };
        let expected: Vec<String> = expected
            .iter()
            .map(|problem| format!("g.txt: {problem}"))
            .collect();
        assert_eq!(found, expected, "reading {text:?}");
    }

    #[test]
    fn problems_name_their_line() {
        check("gridWidth 2\r\ngridDepth 1\r\n\r\n10", &[]);
        check(
            "",
            &["line 1: missing size gridWidth", "line 1: missing size gridDepth"],
        );
        check("gridWidth 2\ngridDepth 2\n\n", &["line 4: too few rows (0 of 2)"]);
        check(
            "gridWidth 0\ngridDepth -1\n",
            &[
                "line 1: gridWidth: a size of 0",
                "line 2: gridDepth: not a number: \"-1\"",
            ],
        );
        check(
            "gridWidth 99999999999\ngridDepth 1\n1\n",
            &["line 1: gridWidth: more than 2^24 cells"],
        );
        check(
            "gridWidth 4097\ngridDepth 4096\n1\n",
            &["line 2: more than 2^24 cells: 4097 × 4096"],
        );
        check(
            "gridWidth 2\ngridDepth 1\ncellSize 0.0099\nagentRadius NaN\nminX 16400.001\nminZ 1 2\nfloorY\n10\n",
            &[
                "line 3: cellSize: outside 0.01 to 100",
                "line 4: agentRadius: not a number: \"NaN\"",
                "line 5: minX: outside -16400 to 16400",
                "line 6: minZ: not a number: \"1 2\"",
                "line 7: floorY: not a number: \"\"",
            ],
        );
        check(
            "gridWidth 1\ngridWidth 1\ngridDepth 1\nCellsize 1\n1\n",
            &[
                "line 2: repeated key gridWidth",
                "line 4: unknown key Cellsize (did you mean cellSize)",
            ],
        );
        check(
            "gridWidth 2\ngridDepth 3\n1\n 10\n1000\n11\n",
            &[
                "line 3: short row (1 cells of 2)",
                "line 4: another character than 1 and 0 (' ' in column 1)",
                "line 5: long row (4 cells of 2)",
                "line 6: too many rows (gridDepth is 3)",
            ],
        );
        check(
            "gridWidth 20\ngridDepth 1\nminX 16400\ncellSize 10\n1\n",
            &["line 2: the grid reaches outside the world limit, past 16500 m"],
        );
    }
}
