use super::*;

/// Reads one object of every kind of key and compares the problems.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let read = || {
        let document = Document::parse("f", text.as_bytes(), 10_000)?;
        let value = document.root().object().map(|mut object| {
            object.fixed_or("radius", Fixed::ONE, Fixed::ZERO..=Fixed::from_int(100));
            object.boolean_or("open", true);
            object.unsigned_or("seed", 0, 0..=u64::MAX);
            object.integer_or("count", 0, -5..=5);
            if let Some(name) = object.optional("name") {
                name.name(8);
            }
            if let Some(kind) = object.optional("kind") {
                kind.choice(&[("grid", 1), ("polygon", 2)]);
            }
            for corner in object.array_or_empty("corners", 3) {
                corner.pair();
            }
            object.finish();
        });
        document.finish(value)
    };
    let found: Vec<String> = match read() {
        Ok(()) => Vec::new(),
        Err(problems) => {
            let lines = problems.as_slice().iter();
            lines
                .map(|problem| format!("{}: {}", problem.place, problem.rule))
                .collect()
        }
    };
    assert_eq!(found, expected, "reading {text}");
}

#[test]
fn problems_name_place_and_rule() {
    check("{}", &[]);
    check(
        r#"{"radius": 100, "open": false, "seed": 18446744073709551615, "count": -5, "name": "äöü", "kind": "grid"}"#,
        &[],
    );
    check("[]", &["$: not an object"]);
    check("null", &["$: not an object"]);
    check(r#"{"radius": 100.0000001}"#, &["$.radius: outside 0 to 100"]);
    check(r#"{"radius": -0.0000001}"#, &["$.radius: outside 0 to 100"]);
    check(r#"{"radius": 1e300}"#, &["$.radius: outside 0 to 100"]);
    check(
        r#"{"radius": 1e400}"#,
        &["line 1 column 16: not JSON: number out of range"],
    );
    check(
        r#"{"radius": NaN}"#,
        &["line 1 column 12: not JSON: expected value"],
    );
    check(
        r#"{"radius": 123456789012345678901234567890}"#,
        &["$.radius: outside 0 to 100"],
    );
    check(r#"{"radius": "1"}"#, &["$.radius: not a number"]);
    check(r#"{"seed": -1}"#, &["$.seed: outside 0 to 18446744073709551615"]);
    check(r#"{"seed": 1.5}"#, &["$.seed: not a whole number"]);
    check(r#"{"count": 6}"#, &["$.count: outside -5 to 5"]);
    check(r#"{"open": 1}"#, &["$.open: not true or false"]);
    check(r#"{"name": ""}"#, &["$.name: empty name"]);
    check(r#"{"name": "123456789"}"#, &["$.name: longer than 8 bytes"]);
    check(
        r#"{"kind": "gird"}"#,
        &["$.kind: not one of grid, polygon (did you mean grid)"],
    );
    check(
        r#"{"corners": [[0, 1], [0], [16001, "x"]]}"#,
        &[
            "$.corners[1]: not an [x, z] pair",
            "$.corners[2][0]: outside the world limit of 16000 m",
            "$.corners[2][1]: not a number",
        ],
    );
    check(
        r#"{"corners": [0, 0, 0, 0]}"#,
        &["$.corners: more than 3 elements"],
    );
    check(
        r#"{"Radius": 1, "zzz": 1, "a b": 1}"#,
        &[
            "$.Radius: unknown key (did you mean radius)",
            "$.zzz: unknown key",
            "$[\"a b\"]: unknown key",
        ],
    );
    check(
        r#"{"open": true, "open": true, "open": 1}"#,
        &["$.open: duplicate key"],
    );
    check(
        "{\n\"open\": tru",
        &["line 2 column 11: not JSON: EOF while parsing a value"],
    );
    check("{} x", &["line 1 column 4: not JSON: trailing characters"]);
    check(
        &"[".repeat(1000),
        &["line 1 column 128: not JSON: recursion limit exceeded"],
    );
    check(&" ".repeat(10_001), &[": longer than 10000 bytes"]);
}

#[test]
fn lines_lead_the_place() {
    let document = Document::parse_line("c.jsonl", 8, br#"{"tick": -1}"#, 100).expect("JSON");
    let tick = document
        .root()
        .object()
        .and_then(|mut object| object.unsigned("tick", 0..=9));
    let problems = document.finish(tick).expect_err("negative");
    assert_eq!(problems.to_string(), "c.jsonl: line 8: $.tick: outside 0 to 9");

    let problems = Document::parse_line("c.jsonl", 8, b"{", 100).expect_err("cut off");
    assert_eq!(
        problems.to_string(),
        "c.jsonl: line 8 column 1: not JSON: EOF while parsing an object"
    );
}

#[test]
fn variants_are_words_or_objects_of_one_key() {
    let check = |text: &str, expected: Option<(&str, bool)>| {
        let document = Document::parse("f", text.as_bytes(), 100).expect("JSON");
        let found = document
            .root()
            .variant()
            .map(|(name, content)| (name.to_owned(), content.is_some()));
        assert_eq!(
            found.as_ref().map(|(name, content)| (name.as_str(), *content)),
            expected,
            "{text}"
        );
    };
    check(r#""idle""#, Some(("idle", false)));
    check(r#"{"patrol": {}}"#, Some(("patrol", true)));
    check(r#"{"patrol": {}, "wander": {}}"#, None);
    check("3", None);
}
