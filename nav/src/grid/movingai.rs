//! The MovingAI benchmark's files: octile maps as grids (spec 6), and scenarios.
//!
//! Format: N. R. Sturtevant, "Benchmarks for Grid-Based Pathfinding", IEEE TCIAIG 4(2), 2012.

use super::cells::Cells;
use super::text::{BakedGrid, Lines, check_extent, key_and_value, place, read_size};
use super::{CELLS_MAX, Cell, GridParameters};
use crate::{Fixed, Point, Problems};

/// Largest map or scenario file, bytes.
pub const MOVINGAI_BYTES_MAX: usize = 3 * CELLS_MAX + (1 << 16);
/// Most problems of a scenario file.
pub const SCENARIOS_MAX: usize = 1 << 18;

/// One line of a scenario file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Problems of similar length share one.
    pub bucket: u32,
    /// The map as the line names it, often with folders.
    pub map: String,
    /// Columns of the map.
    pub width: u32,
    /// Rows of the map.
    pub depth: u32,
    /// From this cell.
    pub start: Cell,
    /// To this cell.
    pub goal: Cell,
    /// The least length with diagonals of √2 and no corners cut, in millionths of a cell.
    pub optimal_length_millionths: u64,
}

impl Scenario {
    /// The map's name without folders.
    pub fn map_file_name(&self) -> &str {
        self.map.rsplit(['/', '\\']).next().unwrap_or(&self.map)
    }
}

/// Reads a map: cellSize 1, minX = minZ = 0, the first row z = 0; `.` `G` `S` walkable, `@` `O` `T` `W` blocked.
///
/// # Errors
/// Every broken rule, with its line.
pub fn parse_map(file: &str, bytes: &[u8]) -> Result<BakedGrid, Problems> {
    check_bytes(file, bytes)?;
    let mut lines = Lines::new(bytes);
    let mut problems = Problems::new();
    let (mut is_octile, mut height, mut width) = (false, None, None);
    let mut map_line = None;
    for (line, text) in lines.by_ref() {
        let (key, value) = key_and_value(text);
        let size = match (&*key, &*value) {
            ("map", "") => {
                map_line = Some(line);
                break;
            }
            ("type", "octile") => {
                is_octile = true;
                continue;
            }
            ("type", _) => {
                problems.push(file, place(line), format!("type {value:?} is not octile"));
                is_octile = true;
                continue;
            }
            ("height", _) => &mut height,
            ("width", _) => &mut width,
            _ => {
                problems.push(
                    file,
                    place(line),
                    format!("unknown key {key:?} before the line `map`"),
                );
                // What follows is no header of this format; rows may be long and many.
                break;
            }
        };
        match read_size(&value) {
            Ok(_) if size.is_some() => problems.push(file, place(line), format!("repeated key {key}")),
            Ok(cells) => *size = Some(cells),
            Err(rule) => problems.push(file, place(line), format!("{key}: {rule}")),
        }
    }
    let line = map_line.unwrap_or(lines.after_last());
    let mut require = |is_there: bool, what: &str| {
        if !is_there && problems.is_empty() {
            problems.push(file, place(line), format!("missing {what}"));
        }
    };
    require(map_line.is_some(), "line `map`");
    require(is_octile, "line `type octile`");
    require(height.is_some(), "height");
    require(width.is_some(), "width");
    let parameters = GridParameters {
        cell_size: Fixed::ONE,
        ..GridParameters::default()
    };
    let (Some(width), Some(height), true) = (width, height, problems.is_empty()) else {
        return Err(problems);
    };
    if let Some(rule) = check_extent(parameters.cell_size, Point::default(), width, height) {
        return Err(Problems::one(file, place(line), rule));
    }
    let cells = read_rows(file, &mut lines, width, height, &mut problems);
    problems.or_else(|| BakedGrid {
        parameters,
        min: Point::default(),
        cells,
    })
}

/// Reads a scenario file: `version 1` and lines of nine fields.
///
/// # Errors
/// Every broken rule, with its line.
pub fn parse_scenarios(file: &str, bytes: &[u8]) -> Result<Vec<Scenario>, Problems> {
    check_bytes(file, bytes)?;
    let mut problems = Problems::new();
    let mut scenarios = Vec::new();
    let mut lines = Lines::new(bytes);
    match lines.next() {
        Some((_, text)) if is_version_1(text) => {}
        Some((line, _)) => problems.push(file, place(line), "not a scenario file: no `version 1`"),
        None => problems.push(file, place(1), "not a scenario file: empty"),
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    for (line, text) in lines {
        if scenarios.len() == SCENARIOS_MAX {
            problems.push(file, place(line), format!("more than {SCENARIOS_MAX} scenarios"));
            break;
        }
        match read_scenario(text) {
            Ok(scenario) => scenarios.push(scenario),
            Err(rule) => problems.push(file, place(line), rule),
        }
    }
    problems.or_else(|| scenarios)
}

fn check_bytes(file: &str, bytes: &[u8]) -> Result<(), Problems> {
    if bytes.len() > MOVINGAI_BYTES_MAX {
        let rule = format!("longer than {MOVINGAI_BYTES_MAX} bytes");
        return Err(Problems::one(file, "", rule));
    }
    Ok(())
}

fn read_rows(file: &str, lines: &mut Lines<'_>, width: u32, height: u32, problems: &mut Problems) -> Cells {
    let mut cells = Cells::new(width, height);
    let mut z = 0;
    for (line, text) in lines.by_ref() {
        if z == height {
            problems.push(file, place(line), format!("too many rows (height is {height})"));
            return cells;
        }
        if text.len() != width as usize {
            let kind = if text.len() < width as usize {
                "short"
            } else {
                "long"
            };
            let rule = format!("{kind} row ({} cells of {width})", text.len());
            problems.push(file, place(line), rule);
        } else {
            for (x, byte) in text.iter().enumerate() {
                match byte {
                    b'.' | b'G' | b'S' => cells.set(x as u32, z, true),
                    b'@' | b'O' | b'T' | b'W' => {}
                    _ => {
                        let character = char::from(*byte);
                        let rule = format!("unknown terrain {character:?} in column {}", x + 1);
                        problems.push(file, place(line), rule);
                        break;
                    }
                }
            }
        }
        z += 1;
    }
    if z < height {
        let rule = format!("too few rows ({z} of {height})");
        problems.push(file, place(lines.after_last()), rule);
    }
    cells
}

fn is_version_1(text: &[u8]) -> bool {
    let (key, value) = key_and_value(text);
    key == "version" && matches!(&*value, "1" | "1.0")
}

fn read_scenario(text: &[u8]) -> Result<Scenario, String> {
    let text = std::str::from_utf8(text).map_err(|_| "not UTF-8".to_owned())?;
    let separator = |c: char| if text.contains('\t') { c == '\t' } else { c == ' ' };
    let fields: Vec<&str> = text.split(separator).map(str::trim).collect();
    let [
        bucket,
        map,
        width,
        height,
        start_x,
        start_y,
        goal_x,
        goal_y,
        length,
    ] = fields[..]
    else {
        return Err(format!("not 9 fields but {}", fields.len()));
    };
    let (width, depth) = (read_size(width)?, read_size(height)?);
    let cell = |x: &str, z: &str| match (number(x)?, number(z)?) {
        (x, z) if x < width && z < depth => Ok(Cell { x, z }),
        (x, z) => Err(format!("cell {x} {z} outside {width} × {depth}")),
    };
    Ok(Scenario {
        bucket: number(bucket)?,
        map: map.to_owned(),
        width,
        depth,
        start: cell(start_x, start_y)?,
        goal: cell(goal_x, goal_y)?,
        optimal_length_millionths: millionths(length)?,
    })
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| not_a_number(text))
}

/// A decimal such as `3.41421` × 10⁶, further digits cut off.
fn millionths(text: &str) -> Result<u64, String> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 9 || !digits(whole) || !digits(fraction) {
        return Err(not_a_number(text));
    }
    let fraction = &fraction[..fraction.len().min(6)];
    let joined = format!("{whole}{fraction:0<6}");
    joined.parse().map_err(|_| not_a_number(text))
}

/// The rule, with as much of the text as is worth showing.
fn not_a_number(text: &str) -> String {
    format!("not a number: {:?}", text.chars().take(40).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check<T: std::fmt::Debug>(found: Result<T, Problems>, expected: &str) {
        assert_eq!(found.expect_err("refused").to_string(), expected);
    }

    #[test]
    fn maps_are_read_and_refused() {
        let map = parse_map(
            "m.map",
            b"type octile\r\nheight 2\r\nwidth 3\r\nmap\r\n.G@\r\nSTW\r\n",
        )
        .expect("a map");
        assert_eq!(map.cells.to_bools(), [true, true, false, true, false, false]);
        assert_eq!(map.parameters.cell_size, Fixed::ONE);
        check(parse_map("m", b""), "m: line 1: missing line `map`");
        check(
            parse_map("m", b"type octile\nheight 1\nmap\n.\n"),
            "m: line 3: missing width",
        );
        check(
            parse_map("m", b"type tile\nheight x\n"),
            "m: line 1: type \"tile\" is not octile\nm: line 2: height: not a number: \"x\"",
        );
        check(
            parse_map("m", b"type octile\nheight 2\nwidth 2\nmap\n.x\n...\n..\n"),
            "m: line 5: unknown terrain 'x' in column 2\nm: line 6: long row (3 cells of 2)\n\
             m: line 7: too many rows (height is 2)",
        );
        check(
            parse_map("m", b"type octile\nheight 2\nwidth 2\nmap\n..\n"),
            "m: line 6: too few rows (1 of 2)",
        );
        check(
            parse_map("m", b"type octile\nheight 1\nwidth 16501\nmap\n"),
            "m: line 4: the grid reaches outside the world limit, past 16500 m",
        );
        check(
            parse_map("m", b"type octile\nheight 5000\nwidth 5000\nmap\n"),
            "m: line 4: more than 2^24 cells: 5000 × 5000",
        );
    }

    #[test]
    fn scenarios_are_read_and_refused() {
        let text = b"version 1\n3\tmaps/dao/arena.map\t49\t48\t1\t11\t4\t12\t3.4142135\n";
        let scenarios = parse_scenarios("s.scen", text).expect("scenarios");
        assert_eq!(scenarios[0].map_file_name(), "arena.map");
        assert_eq!(scenarios[0].goal, Cell { x: 4, z: 12 });
        assert_eq!(scenarios[0].optimal_length_millionths, 3_414_213);
        check(parse_scenarios("s", b""), "s: line 1: not a scenario file: empty");
        check(
            parse_scenarios("s", b"1\n"),
            "s: line 1: not a scenario file: no `version 1`",
        );
        check(
            parse_scenarios(
                "s",
                b"version 1.0\n0\tm\t2\t2\t0\t0\t1\t2\t1\n0\tm\t2\t2\n0\tm\t2\t2\t0\t0\t1\t1\t1e3\n",
            ),
            "s: line 2: cell 1 2 outside 2 × 2\ns: line 3: not 9 fields but 4\ns: line 4: not a number: \"1e3\"",
        );
    }
}
