//! A checked reader over JSON text, shared by maps, locations and commands.
//!
//! Parsing keeps what serde's derives lose: duplicate keys are seen, every problem is collected with its JSON path, and
//! reading goes on after one. A reader walks the document with [`Node`] and [`Object`]; their getters record a problem and
//! return `None` (or the default), and [`Document::finish`] gives the value only if nothing was recorded:
//!
//! ```
//! use nav::{Document, Fixed, Problems};
//!
//! fn radius(file: &str, bytes: &[u8]) -> Result<Fixed, Problems> {
//!     let document = Document::parse(file, bytes, 1000)?;
//!     let radius = document.root().object().and_then(|mut object| {
//!         let radius = object.fixed("radius", Fixed::ZERO..=Fixed::from_int(100));
//!         object.finish();
//!         radius
//!     });
//!     document.finish(radius)
//! }
//!
//! assert_eq!(radius("a.json", br#"{"radius": 0.5}"#).map(Fixed::raw), Ok(32768));
//! let problems = radius("a.json", br#"{"raduis": 0.5}"#).expect_err("misspelt");
//! assert_eq!(
//!     problems.to_string(),
//!     "a.json: $.radius: missing\na.json: $.raduis: unknown key (did you mean radius)"
//! );
//! ```

mod value;

use std::cell::RefCell;
use std::fmt::Display;
use std::ops::RangeInclusive;

use value::Value;

use crate::{Fixed, FixedError, Point, Problems, WORLD_LIMIT};

/// A parsed JSON text with the problems found in it so far.
#[derive(Debug)]
pub struct Document {
    file: String,
    /// Where the text stands in its file if it is one line of several: `line 8`.
    line: Option<u64>,
    root: Value,
    problems: RefCell<Problems>,
}

/// A value in a [`Document`] and its place.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    document: &'a Document,
    value: &'a Value,
    path: String,
}

/// An object being read: remembers which keys were asked for, so that the others are unknown.
#[derive(Debug)]
#[must_use = "call finish() to report unknown keys"]
pub struct Object<'a> {
    node: Node<'a>,
    members: &'a [(String, Value)],
    known: Vec<&'static str>,
    open: bool,
}

/// U+FEFF in UTF-8: some editors save it before the text; no format of ours has it.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl Document {
    /// Parses a whole file of at most `bytes_max` bytes. Depth is limited to 128 (by serde_json).
    ///
    /// # Errors
    /// Too long, or not JSON, with line and column.
    pub fn parse(file: &str, bytes: &[u8], bytes_max: usize) -> Result<Self, Problems> {
        Self::parse_part(file, None, bytes, bytes_max)
    }

    /// Parses one line of a file of JSON lines; `line` counts from 1 and leads every place.
    ///
    /// # Errors
    /// Too long, or not JSON.
    pub fn parse_line(file: &str, line: u64, text: &[u8], bytes_max: usize) -> Result<Self, Problems> {
        Self::parse_part(file, Some(line), text, bytes_max)
    }

    fn parse_part(file: &str, line: Option<u64>, bytes: &[u8], bytes_max: usize) -> Result<Self, Problems> {
        if bytes.len() > bytes_max {
            let place = line.map_or(String::new(), |line| format!("line {line}"));
            return Err(Problems::one(
                file,
                place,
                format!("longer than {bytes_max} bytes"),
            ));
        }
        if bytes.starts_with(BYTE_ORDER_MARK) {
            let place = format!("line {}", line.unwrap_or(1));
            return Err(Problems::one(file, place, "a byte order mark before the text"));
        }
        match serde_json::from_slice(bytes) {
            Ok(root) => Ok(Self {
                file: file.to_owned(),
                line,
                root,
                problems: RefCell::default(),
            }),
            Err(error) => {
                let inner = error.line() as u64;
                let line = line.map_or(inner, |line| line + inner.saturating_sub(1));
                let text = error.to_string();
                let reason = text.rsplit_once(" at line ").map_or(&*text, |(reason, _)| reason);
                Err(Problems::one(
                    file,
                    format!("line {line} column {}", error.column()),
                    format!("not JSON: {reason}"),
                ))
            }
        }
    }

    /// The outermost value, `$`.
    pub fn root(&self) -> Node<'_> {
        Node {
            document: self,
            value: &self.root,
            path: "$".to_owned(),
        }
    }

    /// Records a problem at a JSON path.
    pub fn problem(&self, path: &str, rule: impl Into<String>) {
        let place = self
            .line
            .map_or(path.to_owned(), |line| format!("line {line}: {path}"));
        self.problems.borrow_mut().push(&self.file, place, rule);
    }

    /// The file's name as given.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Whether nothing is wrong so far.
    pub fn is_faultless(&self) -> bool {
        self.problems.borrow().is_empty()
    }

    /// What was read, if nothing is wrong.
    ///
    /// # Errors
    /// All recorded problems.
    ///
    /// # Panics
    /// If the value is missing although no problem was recorded: a defect of the reader.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, Problems> {
        self.problems
            .into_inner()
            .or_else(|| value.expect("a reader that returns nothing has recorded why"))
    }
}

impl<'a> Node<'a> {
    /// The JSON path, `$.areas[0].polygon[1][0]`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Records that this value breaks a rule.
    pub fn problem(&self, rule: impl Into<String>) {
        self.document.problem(&self.path, rule);
    }

    /// Records that what stands in this value at a path from here, such as `.points[0]`, breaks a rule.
    pub fn problem_below(&self, path: &str, rule: impl Into<String>) {
        self.document.problem(&format!("{}{path}", self.path), rule);
    }

    /// An object; its duplicate keys are problems.
    pub fn object(&self) -> Option<Object<'a>> {
        let Value::Object(members) = self.value else {
            return self.wrong("an object");
        };
        let mut keys: Vec<&str> = members.iter().map(|(key, _)| key.as_str()).collect();
        keys.sort_unstable();
        let mut reported = None;
        for pair in keys.windows(2) {
            if pair[0] == pair[1] && reported != Some(pair[0]) {
                self.document
                    .problem(&member_path(&self.path, pair[0]), "duplicate key");
                reported = Some(pair[0]);
            }
        }
        Some(Object {
            node: self.clone(),
            members,
            known: Vec::new(),
            open: false,
        })
    }

    /// The elements of an array of at most `count_max`.
    pub fn items(&self, count_max: usize) -> Option<Vec<Node<'a>>> {
        let Value::Array(values) = self.value else {
            return self.wrong("an array");
        };
        if values.len() > count_max {
            self.problem(format!("more than {count_max} elements"));
            return None;
        }
        let nodes = values.iter().enumerate().map(|(index, value)| Node {
            document: self.document,
            value,
            path: format!("{}[{index}]", self.path),
        });
        Some(nodes.collect())
    }

    /// A number within a range, to the nearest [`Fixed`] (spec 1); compared with the range before it is rounded.
    pub fn fixed(&self, range: RangeInclusive<Fixed>) -> Option<Fixed> {
        let result = match self.value {
            Value::Decimal(value) => Fixed::from_f64_in(*value, range.clone()),
            // Rounds to the nearest f64, as reading the text as a decimal would.
            Value::Integer(value) => Fixed::from_f64_in(*value as f64, range.clone()),
            _ => return self.wrong("a number"),
        };
        match result {
            Ok(value) => Some(value),
            Err(FixedError::NotANumber) => self.wrong("a number"),
            Err(FixedError::OutOfRange) => {
                self.problem(outside(&range));
                None
            }
        }
    }

    /// Any number, as the nearest f64: for callers that convert its unit before it becomes a [`Fixed`].
    pub fn number(&self) -> Option<f64> {
        match self.value {
            Value::Decimal(value) => Some(*value),
            Value::Integer(value) => Some(*value as f64),
            _ => self.wrong("a number"),
        }
    }

    /// A coordinate or height: a number within the world limit.
    pub fn coordinate(&self) -> Option<Fixed> {
        let number = match self.value {
            Value::Decimal(value) => Fixed::from_f64(*value),
            Value::Integer(value) => Fixed::from_f64(*value as f64),
            _ => return self.wrong("a number"),
        };
        if number.is_err() {
            self.problem(format!("outside the world limit of {WORLD_LIMIT} m"));
        }
        number.ok()
    }

    /// A position `[x, z]` within the world limit.
    pub fn pair(&self) -> Option<Point> {
        let Value::Array(values) = self.value else {
            return self.wrong("an [x, z] pair");
        };
        let [x, z] = &values[..] else {
            return self.wrong("an [x, z] pair");
        };
        let part = |index: usize, value: &'a Value| {
            Node {
                document: self.document,
                value,
                path: format!("{}[{index}]", self.path),
            }
            .coordinate()
        };
        let (x, z) = (part(0, x), part(1, z));
        Some(Point::new(x?, z?))
    }

    /// A whole number within a range.
    pub fn integer(&self, range: RangeInclusive<i64>) -> Option<i64> {
        let Value::Integer(value) = self.value else {
            return self.wrong("a whole number");
        };
        match i64::try_from(*value) {
            Ok(value) if range.contains(&value) => Some(value),
            _ => {
                self.problem(outside(&range));
                None
            }
        }
    }

    /// A whole number ≥ 0 within a range, for what needs all of 64 bits.
    pub fn unsigned(&self, range: RangeInclusive<u64>) -> Option<u64> {
        let Value::Integer(value) = self.value else {
            return self.wrong("a whole number");
        };
        match u64::try_from(*value) {
            Ok(value) if range.contains(&value) => Some(value),
            _ => {
                self.problem(outside(&range));
                None
            }
        }
    }

    /// `true` or `false`.
    pub fn boolean(&self) -> Option<bool> {
        match self.value {
            Value::Boolean(value) => Some(*value),
            _ => self.wrong("true or false"),
        }
    }

    /// Text of at most `bytes_max` bytes of UTF-8; it may be empty.
    pub fn text(&self, bytes_max: usize) -> Option<&'a str> {
        let Value::Text(text) = self.value else {
            return self.wrong("text");
        };
        if text.len() > bytes_max {
            self.problem(format!("longer than {bytes_max} bytes"));
            return None;
        }
        Some(text)
    }

    /// A name: text of 1 to `bytes_max` bytes.
    pub fn name(&self, bytes_max: usize) -> Option<&'a str> {
        let text = self.text(bytes_max)?;
        if text.is_empty() {
            self.problem("empty name");
            return None;
        }
        Some(text)
    }

    /// One of several words, given with what each stands for.
    pub fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Option<T> {
        let Value::Text(text) = self.value else {
            return self.wrong(&one_of(choices.iter().map(|choice| choice.0)));
        };
        let found = choices.iter().find(|choice| choice.0 == text);
        if found.is_none() {
            let words = || choices.iter().map(|choice| choice.0);
            self.problem(format!("not {}{}", one_of(words()), did_you_mean(text, words())));
        }
        found.map(|choice| choice.1)
    }

    /// A variant of an enum, as serde writes it: `"idle"` (no content) or `{"patrol": …}` (one key and its content).
    pub fn variant(&self) -> Option<(&'a str, Option<Node<'a>>)> {
        match self.value {
            Value::Text(name) => Some((name, None)),
            Value::Object(members) if members.len() == 1 => {
                let (name, value) = &members[0];
                Some((name, Some(self.member(name, value))))
            }
            _ => self.wrong("a word or an object of one key"),
        }
    }

    /// Whether this is an array.
    pub fn is_array(&self) -> bool {
        matches!(self.value, Value::Array(_))
    }

    /// Whether this is an object.
    pub fn is_object(&self) -> bool {
        matches!(self.value, Value::Object(_))
    }

    /// Whether this is text.
    pub fn is_text(&self) -> bool {
        matches!(self.value, Value::Text(_))
    }

    fn member(&self, key: &str, value: &'a Value) -> Self {
        Self {
            document: self.document,
            value,
            path: member_path(&self.path, key),
        }
    }

    fn wrong<T>(&self, wanted: &str) -> Option<T> {
        self.problem(format!("not {wanted}"));
        None
    }
}

impl<'a> Object<'a> {
    /// The JSON path of the object.
    pub fn path(&self) -> &str {
        self.node.path()
    }

    /// Records that the object as a whole breaks a rule.
    pub fn problem(&self, rule: impl Into<String>) {
        self.node.problem(rule);
    }

    /// Records that the value of a key breaks a rule.
    pub fn problem_at(&self, key: &str, rule: impl Into<String>) {
        self.node
            .document
            .problem(&member_path(&self.node.path, key), rule);
    }

    /// The value of a key that may be missing.
    pub fn optional(&mut self, key: &'static str) -> Option<Node<'a>> {
        self.known.push(key);
        let (name, value) = self.members.iter().find(|(name, _)| name == key)?;
        Some(self.node.member(name, value))
    }

    /// The value of a key that must be there.
    pub fn required(&mut self, key: &'static str) -> Option<Node<'a>> {
        let node = self.optional(key);
        if node.is_none() {
            self.problem_at(key, "missing");
        }
        node
    }

    /// A required number; see [`Node::fixed`].
    pub fn fixed(&mut self, key: &'static str, range: RangeInclusive<Fixed>) -> Option<Fixed> {
        self.required(key)?.fixed(range)
    }

    /// A number with a default.
    pub fn fixed_or(&mut self, key: &'static str, default: Fixed, range: RangeInclusive<Fixed>) -> Fixed {
        let node = self.optional(key);
        node.and_then(|node| node.fixed(range)).unwrap_or(default)
    }

    /// A required coordinate; see [`Node::coordinate`].
    pub fn coordinate(&mut self, key: &'static str) -> Option<Fixed> {
        self.required(key)?.coordinate()
    }

    /// The position of an object with the keys `x` and `z`.
    pub fn point(&mut self) -> Option<Point> {
        let (x, z) = (self.coordinate("x"), self.coordinate("z"));
        Some(Point::new(x?, z?))
    }

    /// A required whole number.
    pub fn integer(&mut self, key: &'static str, range: RangeInclusive<i64>) -> Option<i64> {
        self.required(key)?.integer(range)
    }

    /// A whole number with a default.
    pub fn integer_or(&mut self, key: &'static str, default: i64, range: RangeInclusive<i64>) -> i64 {
        let node = self.optional(key);
        node.and_then(|node| node.integer(range)).unwrap_or(default)
    }

    /// A required whole number ≥ 0.
    pub fn unsigned(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        self.required(key)?.unsigned(range)
    }

    /// A whole number ≥ 0 with a default.
    pub fn unsigned_or(&mut self, key: &'static str, default: u64, range: RangeInclusive<u64>) -> u64 {
        let node = self.optional(key);
        node.and_then(|node| node.unsigned(range)).unwrap_or(default)
    }

    /// A required `true` or `false`.
    pub fn boolean(&mut self, key: &'static str) -> Option<bool> {
        self.required(key)?.boolean()
    }

    /// `true` or `false` with a default.
    pub fn boolean_or(&mut self, key: &'static str, default: bool) -> bool {
        let node = self.optional(key);
        node.and_then(|node| node.boolean()).unwrap_or(default)
    }

    /// A required text; see [`Node::text`].
    pub fn text(&mut self, key: &'static str, bytes_max: usize) -> Option<&'a str> {
        self.required(key)?.text(bytes_max)
    }

    /// A required name; see [`Node::name`].
    pub fn name(&mut self, key: &'static str, bytes_max: usize) -> Option<&'a str> {
        let node = self.optional(key);
        if node.is_none() {
            self.problem_at(key, "missing name");
        }
        node?.name(bytes_max)
    }

    /// The elements of a required array; empty after a problem.
    pub fn array(&mut self, key: &'static str, count_max: usize) -> Vec<Node<'a>> {
        let node = self.required(key);
        node.and_then(|node| node.items(count_max)).unwrap_or_default()
    }

    /// The elements of an array that may be missing.
    pub fn array_or_empty(&mut self, key: &'static str, count_max: usize) -> Vec<Node<'a>> {
        let node = self.optional(key);
        node.and_then(|node| node.items(count_max)).unwrap_or_default()
    }

    /// Every key with its value, in file order: for objects whose keys are names. No key is unknown then.
    pub fn entries(&mut self) -> Vec<(&'a str, Node<'a>)> {
        self.open = true;
        let entries = self.members.iter();
        entries
            .map(|(key, value)| (key.as_str(), self.node.member(key, value)))
            .collect()
    }

    /// Reports the keys that nobody asked for.
    pub fn finish(self) {
        if self.open {
            return;
        }
        for (key, _) in self.members {
            if !self.known.contains(&key.as_str()) {
                let hint = did_you_mean(key, self.known.iter().copied());
                self.problem_at(key, format!("unknown key{hint}"));
            }
        }
    }
}

/// ` (did you mean WORD)` for the candidate nearest to a misspelt word, or nothing if none is near.
pub fn did_you_mean<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> String {
    // A longer word is no misspelling of ours, and the distance costs length × length.
    const WORD_BYTES_MAX: usize = 64;
    if word.len() > WORD_BYTES_MAX {
        return String::new();
    }
    let lower = word.to_lowercase();
    let distances = candidates.map(|candidate| {
        let distance = strsim::osa_distance(&lower, &candidate.to_lowercase());
        (distance, candidate)
    });
    match distances.min_by_key(|near| near.0) {
        Some((distance, candidate)) if distance <= candidate.len() / 3 => {
            format!(" (did you mean {candidate})")
        }
        _ => String::new(),
    }
}

/// The rule of a range, in words.
fn outside<T: Display>(range: &RangeInclusive<T>) -> String {
    format!("outside {} to {}", range.start(), range.end())
}

/// The alternatives, in words: `one of a, b, c`.
fn one_of<'c>(words: impl Iterator<Item = &'c str>) -> String {
    format!("one of {}", words.collect::<Vec<_>>().join(", "))
}

/// `$.areas` and `name` → `$.areas.name`; a key that is no plain word is quoted and, if long, cut.
fn member_path(path: &str, key: &str) -> String {
    const KEY_CHARACTERS_MAX: usize = 64;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.len() <= KEY_CHARACTERS_MAX && key.chars().all(plain) {
        format!("{path}.{key}")
    } else {
        let start: String = key.chars().take(KEY_CHARACTERS_MAX).collect();
        let dots = if start.len() < key.len() { "…" } else { "" };
        format!("{path}[{start:?}{dots}]")
    }
}

#[cfg(test)]
mod tests;
