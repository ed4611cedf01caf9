//! A recording that its commands do not lead to is found out, at the same tick by any number of threads.

use nav::Fixed;
use serde_json::{Value, json};
use sim::World;

use super::verify::verify;
use crate::cli::output;
use crate::cli::recorded::changed::{CHANGED, changed, definition, files, record, world_at};
use crate::cli::recorded::open_at;
use crate::journal::reader::Journal;

#[test]
fn the_first_difference_is_the_same_whoever_finds_it() {
    let (bundle, definition) = definition();
    let files = files();
    let walk = |world: &World| changed(world, |character| character.walk_speed = Fixed::from_raw(9_001));
    for (name, end) in [("with", 2_500), ("without", 590)] {
        record(
            &files.path(name),
            &bundle,
            world_at(&definition, 0),
            end,
            555,
            walk,
        );
    }
    let check = |name: &str, threads: usize, until: u64| -> Value {
        let journal = Journal::of_segment(&files.path(name));
        let (mut reader, first) = open_at(&journal, 0).expect("a journal");
        let mut progress = output::progress(1, "ticks");
        let verified = verify(&mut reader, first, until, &definition, threads, &mut progress);
        json!(verified.expect("no damage").found)
    };
    for threads in [1, 2, 8] {
        let found = check("with", threads, u64::MAX);
        assert_eq!((&found["tick"], &found["field"]), (&json!(556), &json!("digest")));
        assert_eq!(found["keyframe"], 600);
        let fields = found["fields"].as_array().expect("a list");
        let is_changed = |field: &Value| field["character"] == CHANGED.0 && field["field"] == "walk_speed";
        let changed = fields
            .iter()
            .find(|field| is_changed(field))
            .expect("it is named");
        assert_eq!(
            changed["old"],
            json!(Fixed::from_raw(9_001)),
            "recorded, then computed"
        );
        let found = check("without", threads, u64::MAX);
        assert_eq!((&found["tick"], &found["keyframe"]), (&json!(556), &Value::Null));
        assert_eq!(check("with", threads, 555), Value::Null);
    }
}
