//! The files of a location as bytes: the location file and the maps that it names (spec 5.3, 6).
//!
//! Map paths are relative to the location file and stay inside its folder (`sim::map_paths` refuses all others), so that a
//! location from somebody else names nothing but its own files. Symbolic links are followed within the folder, as volumes of
//! configuration are laid out, and not out of it: clients may ask for the bytes.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use nav::Problems;
use sim::{Definition, Sources};

/// Bytes of a location file.
pub(crate) const LOCATION_BYTES_MAX: u64 = 16 << 20;
/// Bytes of all files of a location together (spec 5.3).
pub(crate) const FILES_BYTES_MAX: u64 = 64 << 20;

const _: () = assert!(LOCATION_BYTES_MAX < FILES_BYTES_MAX);

/// A location file and its maps, as read.
pub(crate) struct LocationFiles {
    /// Name of the location file, for errors.
    pub(crate) file: String,
    /// Its bytes.
    pub(crate) location: Vec<u8>,
    /// The maps under the paths that the location file uses, sorted by bytes.
    pub(crate) maps: Vec<(String, Vec<u8>)>,
}

impl LocationFiles {
    /// Reads a location file and the maps that it names.
    ///
    /// # Errors
    /// Every problem of the location file; a file that cannot be read or is too long.
    pub(crate) fn read(path: &Path) -> Result<Self, Problems> {
        let file = path.display().to_string();
        let location = read_file(path, LOCATION_BYTES_MAX).map_err(|rule| Problems::one(&file, "", rule))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut left = FILES_BYTES_MAX - location.len() as u64;
        let mut maps = Vec::new();
        let mut problems = Problems::new();
        for name in sim::map_paths(&file, &location)? {
            let map = folder.join(&name);
            match is_within(folder, &map).and_then(|()| read_file(&map, left)) {
                Ok(bytes) => {
                    left -= bytes.len() as u64;
                    maps.push((name, bytes));
                }
                Err(rule) => problems.push(&map.display().to_string(), "", rule),
            }
        }
        problems.or_else(|| Self { file, location, maps })
    }

    /// The demo that is built in: a town quarter.
    pub(crate) fn demo() -> Self {
        let map = include_bytes!("../../config/locations/maps/town.json");
        Self {
            file: "built-in demo".to_owned(),
            location: include_bytes!("../../config/locations/town.json").to_vec(),
            maps: vec![("maps/town.json".to_owned(), map.to_vec())],
        }
    }

    /// Checks everything; the tick rate and the number of bots may be overridden.
    ///
    /// # Errors
    /// Every problem in every file, with its place.
    pub(crate) fn definition(
        &self,
        tick_rate: Option<u16>,
        bots: Option<u32>,
    ) -> Result<Definition, Problems> {
        Definition::load(&Sources {
            location_file: &self.file,
            location: &self.location,
            tick_rate,
            bots,
            files: &self.maps,
        })
    }
}

/// Whether a path, its links followed, stays inside a folder.
fn is_within(folder: &Path, path: &Path) -> Result<(), String> {
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let whole = |path: &Path| {
        path.canonicalize()
            .map_err(|error| format!("cannot be read: {error}"))
    };
    if whole(path)?.starts_with(whole(folder)?) {
        return Ok(());
    }
    Err("not inside the location's folder".to_owned())
}

/// The bytes of a regular file, or why not.
fn read_file(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    // Looked at before it is opened: opening a pipe would wait for its writer.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err("not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(bytes_max + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!("longer than the {bytes_max} bytes that are left for it"));
    }
    Ok(bytes)
}
