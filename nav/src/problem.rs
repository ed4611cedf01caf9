//! What is wrong with a file from outside: every problem, each with the file, the place and the rule it breaks.

use std::fmt::{self, Write};

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file as the caller named it.
    pub file: String,
    /// A JSON path such as `$.areas[0].polygon[1][0]`, or `line 8`; empty where the whole file is meant.
    pub place: String,
    /// What should have been, in words.
    pub rule: String,
}

/// The problems of one or several files in the order they were found; the first [`Problems::KEPT_MAX`] are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    kept: Vec<Problem>,
    dropped: usize,
}

impl Problems {
    /// So many problems are kept; a file of a million mistakes is not answered by a million lines.
    pub const KEPT_MAX: usize = 100;

    /// No problem so far.
    pub const fn new() -> Self {
        Self {
            kept: Vec::new(),
            dropped: 0,
        }
    }

    /// A list of this one problem.
    pub fn one(file: &str, place: impl Into<String>, rule: impl Into<String>) -> Self {
        let mut problems = Self::new();
        problems.push(file, place, rule);
        problems
    }

    /// Adds a problem; counted only, when enough are kept.
    pub fn push(&mut self, file: &str, place: impl Into<String>, rule: impl Into<String>) {
        if self.kept.len() < Self::KEPT_MAX {
            self.kept.push(Problem {
                file: file.to_owned(),
                place: place.into(),
                rule: rule.into(),
            });
        } else {
            self.dropped += 1;
        }
    }

    /// Adds those of another file.
    pub fn append(&mut self, other: Self) {
        let room = Self::KEPT_MAX - self.kept.len();
        self.dropped += other.dropped + other.kept.len().saturating_sub(room);
        self.kept.extend(other.kept.into_iter().take(room));
    }

    /// The kept problems, in order.
    pub fn as_slice(&self) -> &[Problem] {
        &self.kept
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// `Ok` with the value `make` gives if there is no problem.
    ///
    /// # Errors
    /// These problems, if there are any.
    pub fn or_else<T>(self, make: impl FnOnce() -> T) -> Result<T, Self> {
        if self.is_empty() { Ok(make()) } else { Err(self) }
    }
}

impl std::error::Error for Problems {}

impl fmt::Display for Problem {
    /// On one line, whatever the file was: control characters are escaped, so that nothing in it speaks to a terminal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut escaped = Escaped(f);
        if self.place.is_empty() {
            write!(escaped, "{}: {}", self.file, self.rule)
        } else {
            write!(escaped, "{}: {}: {}", self.file, self.place, self.rule)
        }
    }
}

/// Passes text on with control characters as `\n`, `\u{1b}`.
struct Escaped<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Escaped<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|character| {
            if character.is_control() {
                write!(self.0, "{}", character.escape_default())
            } else {
                self.0.write_char(character)
            }
        })
    }
}

impl fmt::Display for Problems {
    /// One per line, without a line end after the last.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.kept.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            fmt::Display::fmt(problem, f)?;
        }
        if self.dropped > 0 {
            write!(f, "\nand {} more problems", self.dropped)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_names_file_place_and_rule() {
        let mut problems = Problems::one("a.json", "$.cellSize", "outside 0.01 to 100");
        problems.push("b.txt", "", "too few rows");
        assert_eq!(
            problems.to_string(),
            "a.json: $.cellSize: outside 0.01 to 100\nb.txt: too few rows"
        );
    }

    #[test]
    fn a_problem_is_one_line_whatever_the_file_says() {
        let problems = Problems::one("a\u{1b}.json", "$.x", "not one of a\nerror: b, Zoë");
        assert_eq!(
            problems.to_string(),
            "a\\u{1b}.json: $.x: not one of a\\nerror: b, Zoë"
        );
    }

    #[test]
    fn further_problems_are_counted() {
        let mut problems = Problems::new();
        for line in 0..Problems::KEPT_MAX + 7 {
            problems.push("a", format!("line {line}"), "wrong");
        }
        problems.append(Problems::one("b", "", "wrong"));
        assert_eq!(problems.as_slice().len(), Problems::KEPT_MAX);
        assert!(problems.to_string().ends_with("and 8 more problems"));
    }
}
