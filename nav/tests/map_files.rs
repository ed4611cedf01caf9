//! Maps from outside: the reference vectors of good and bad files, and files that nobody meant.

use std::fs;
use std::path::{Path, PathBuf};

use nav::drawing::QueryPicture;
use nav::{Circle, Drawing, EditedMap, Fixed, MapFile, Point, Route, movingai};
use proptest::prelude::*;

fn data(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests")
        .join(folder)
}

/// The files of a folder, by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of test data");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    paths
}

fn name(path: &Path) -> String {
    let name = path.file_name().expect("a file");
    name.to_str().expect("a plain name").to_owned()
}

/// Each bad file gives a problem with the place and the words of the rule that its `.expect.txt` names.
#[test]
fn bad_files_are_refused_with_place_and_rule() {
    let mut checked = 0;
    for path in files(&data("vectors/bad")) {
        let file = name(&path);
        if file.ends_with(".expect.txt") {
            continue;
        }
        let expected =
            fs::read_to_string(path.with_file_name(format!("{file}.expect.txt"))).expect("its twin");
        let expected = expected.trim_end();
        // `PLACE: RULE (remark)`; PLACE may be missing, and the remark is for people.
        let (place, rule) = match expected.split_once(": ") {
            Some((place, rule)) => (place, rule),
            None if file == "not-json.json" => ("line 2", "not JSON"),
            None => ("", expected),
        };
        let rule = rule.split(" (").next().expect("text");
        let bytes = fs::read(&path).expect("a vector");
        let problems = MapFile::parse(&file, &bytes).expect_err(&file);
        let all = problems.to_string();
        let found = problems.as_slice().iter().any(|problem| {
            let place_fits = match place {
                "" => !problem.place.is_empty(),
                "line 2" => problem.place.starts_with(place),
                _ => problem.place == place,
            };
            // The rule's own words, in our order: "outside the world limit of 16000 m".
            problem.file == file
                && place_fits
                && rule
                    .split(' ')
                    .all(|word| problem.rule.contains(word) || word == "coordinate")
        });
        assert!(found, "{file}: expected `{expected}`, found:\n{all}");
        checked += 1;
    }
    assert!(checked >= 36, "only {checked} vectors");
}

#[test]
fn a_loose_grid_is_saved_in_the_one_form() {
    let folder = data("vectors/good");
    let loose = fs::read(folder.join("loose.txt")).expect("a vector");
    let saved = fs::read_to_string(folder.join("loose.saved.txt")).expect("a vector");
    let Ok(MapFile::Baked(grid)) = MapFile::parse("loose.txt", &loose) else {
        panic!("loose.txt is a grid");
    };
    assert_eq!(grid.to_text(), saved);
}

#[test]
fn polygons_bake_to_the_reference_grids() {
    let cases = files(&data("vectors/nav-grid"));
    assert!(cases.len() >= 34);
    for case in cases {
        let map = MapFile::parse("map.json", &fs::read(case.join("map.json")).expect("a map"));
        let map = map.unwrap_or_else(|problems| panic!("{}: {problems}", case.display()));
        let expected = fs::read_to_string(case.join("grid.txt")).expect("a grid");
        let baked = EditedMap::new(&map).to_baked();
        assert_eq!(baked.to_text(), expected, "{}", case.display());
        assert_eq!(
            MapFile::parse("grid.txt", expected.as_bytes()).expect("a grid"),
            MapFile::Baked(baked),
            "{}",
            case.display()
        );
    }
}

#[test]
fn movingai_maps_and_scenarios_are_read() {
    let mut scenarios_read = 0;
    for path in files(&data("maps")) {
        let file = name(&path);
        let bytes = fs::read(&path).expect("readable");
        if file.ends_with(".map") {
            MapFile::parse(&file, &bytes).unwrap_or_else(|problems| panic!("{problems}"));
        } else if file.ends_with(".scen") {
            let scenarios =
                movingai::parse_scenarios(&file, &bytes).unwrap_or_else(|problems| panic!("{problems}"));
            assert!(
                scenarios
                    .iter()
                    .all(|scenario| file.starts_with(scenario.map_file_name()))
            );
            scenarios_read += scenarios.len();
        }
    }
    assert!(scenarios_read > 0);
}

/// Small files that would keep a machine busy for hours, or want all its memory.
#[test]
fn greedy_maps_are_refused_at_once() {
    let check = |text: String, rule: &str| {
        let problems = MapFile::parse("m.json", text.as_bytes())
            .expect_err(rule)
            .to_string();
        assert!(problems.contains(rule), "{problems}");
    };
    // A saw of 16,000 teeth as high as a world that is five cells wide.
    let teeth: Vec<String> = (0..8_000)
        .map(|tooth| {
            format!(
                "[{}, {}]",
                f64::from(tooth) / 65_536.0,
                if tooth % 2 == 0 { -15_900 } else { 15_900 }
            )
        })
        .collect();
    let saw = format!("{}, [0.2, 16000], [-0.2, 16000]", teeth.join(", "));
    let map = |radius: u32, polygon: &str| {
        format!(
            r#"{{"cellSize": 0.1, "agentRadius": {radius}, "objectPadding": 0,
                "areas": [{{"name": "a", "polygon": [{polygon}]}}]}}"#
        )
    };
    check(map(0, &saw), "too many edges over too many cells");
    check(
        map(0, "[-16000, -16000], [16000, -16000], [16000, 16000]"),
        "more than 2^24 cells",
    );
    check(map(0, &vec!["[0, 0]"; 300_000].join(",")), "more than 262144");
}

/// The picture of a small map and a path, as text; `BLESS=1` writes it anew.
#[test]
fn a_picture_is_as_it_was() {
    let map = br#"{"areas": [
        {"name": "room", "polygon": [[0, 0], [8, 0], [8, 6], [0, 6]]},
        {"name": "<shed & \u0007\"yard\">", "available": false, "polygon": [[8, 1], [12, 1], [12, 5], [8, 5]]}],
        "obstacles": [{"name": "table", "polygon": [[3, 2], [5, 2], [5, 4], [3, 4]]}]}"#;
    let map = EditedMap::new(&MapFile::parse("map.json", map).expect("a map"));
    let point = |x: i32, z: i32| Point::new(Fixed::from_int(x), Fixed::from_int(z));
    let route = Route {
        found: true,
        cells: vec![(7, 7), (8, 8), (9, 8)],
        waypoints: vec![point(2, 5), point(6, 5)],
        ..Route::default()
    };
    let mut drawing = Drawing::of_map(&map);
    drawing.add_query(
        map.frame(),
        &QueryPicture {
            from: point(1, 1),
            to: point(10, 3),
            standing: &[Circle {
                centre: point(6, 1),
                radius: Fixed::ONE,
            }],
            route: &route,
            expanded: &[(7, 7), (8, 7), (8, 8)],
        },
    );
    let svg = drawing.to_svg("map.json: 1, 1 → 10, 3");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/picture.svg");
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all(golden.parent().expect("a folder")).expect("writable");
        fs::write(&golden, &svg).expect("writable");
    }
    assert_eq!(
        svg,
        fs::read_to_string(golden).expect("a golden picture; BLESS=1 makes it")
    );
    assert!(svg.contains("&lt;shed &amp; \u{fffd}&quot;yard&quot;&gt; (closed)"));
}

/// Something the readers know, to be damaged.
fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let map = br#"{"cellSize": 0.4, "agentRadius": 0.45, "objectPadding": 0.25, "boundaryPadding": 0.1, "floorY": 1,
        "areas": [{"name": "a", "available": true, "polygon": [[0, 0], [6, 0], [6, 6.5], [0, 6]]}],
        "obstacles": [{"name": "o", "polygon": [[1, 1], [2, 1], [1e0, 2]]}]}"#;
    let grid = b"cellSize 0.5\nminX 3\nminZ -2.5\ngridWidth 4\ngridDepth 3\n1111\n1001\n0110\n";
    let octile = b"type octile\nheight 2\nwidth 3\nmap\n.@T\nGSW\n";
    let scenarios = b"version 1\n3\tm.map\t49\t48\t1\t11\t4\t12\t3.41421356\n";
    vec![
        ("m.json", map.to_vec()),
        ("m.txt", grid.to_vec()),
        ("m.map", octile.to_vec()),
        ("m.scen", scenarios.to_vec()),
    ]
}

/// Reading never panics, and what is read can be built and written.
fn read(file: &str, bytes: &[u8]) -> Result<(), TestCaseError> {
    if file.ends_with(".scen") {
        if let Err(problems) = movingai::parse_scenarios(file, bytes) {
            prop_assert!(!problems.is_empty());
        }
        return Ok(());
    }
    match MapFile::parse(file, bytes) {
        Err(problems) => prop_assert!(!problems.to_string().is_empty()),
        // A digit more can make a map of millions of cells: right, and slow to draw so often.
        Ok(MapFile::Polygons(map))
            if map
                .frame()
                .is_some_and(|frame| frame.width * frame.depth > 1 << 18) => {}
        Ok(map) => {
            let baked = EditedMap::new(&map).to_baked();
            let text = baked.to_text();
            prop_assert!(
                Drawing::of_map(&EditedMap::new(&map))
                    .to_svg(file)
                    .ends_with("</svg>\n")
            );
            prop_assert_eq!(
                MapFile::parse("again.txt", text.as_bytes()),
                Ok(MapFile::Baked(baked))
            );
        }
    }
    Ok(())
}

/// Numbers where readers break.
const NUMBERS: [&str; 20] = [
    "-0",
    "0.0",
    "1e-400",
    "1e400",
    "-1e400",
    "NaN",
    "16000",
    "-16000",
    "16000.000001",
    "32767.99999",
    "2147483648",
    "4294967296",
    "9223372036854775808",
    "18446744073709551616",
    "99999999999999999999999",
    "0.01",
    "0.0099999",
    "100",
    "100.00001",
    "1e2",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn random_bytes_never_panic(kind in 0..4usize, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read(seeds()[kind].0, &bytes)?;
    }

    #[test]
    fn damaged_files_never_panic(
        kind in 0..4usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..4usize, any::<u8>()), 1..5),
    ) {
        let (file, mut bytes) = seeds().swap_remove(kind);
        for (place, change, byte) in changes {
            let place = place.index(bytes.len().max(1));
            match change {
                _ if bytes.is_empty() => {}
                0 => bytes[place] = byte,
                1 => { bytes.remove(place); }
                2 => bytes.insert(place, byte),
                _ => bytes.truncate(place),
            }
        }
        read(file, &bytes)?;
    }

    #[test]
    fn odd_numbers_never_panic(
        kind in 0..4usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..NUMBERS.len()), 1..4),
    ) {
        let (file, bytes) = seeds().swap_remove(kind);
        let mut text = String::from_utf8(bytes).expect("the seeds are text");
        for (place, number) in changes {
            // Replace one run of digits.
            let starts: Vec<usize> = text
                .char_indices()
                .filter(|(index, c)| c.is_ascii_digit() && !text[..*index].ends_with(|c: char| c.is_ascii_digit()))
                .map(|(index, _)| index)
                .collect();
            if starts.is_empty() {
                continue;
            }
            let start = starts[place.index(starts.len())];
            let length = text[start..].find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len() - start);
            text.replace_range(start..start + length, NUMBERS[number]);
        }
        read(file, text.as_bytes())?;
    }
}
