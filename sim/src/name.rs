//! The rule for characters' names (spec 4.5, "Names"), applied wherever a name enters: files, sessions, the admin.
//!
//! It needs Unicode tables, which grow with every release of them. So it is asked at the edge only, never by a step: what a
//! journal holds must be applied in the same way by every later build.

use std::ops::RangeInclusive;

use unicode_normalization::char::is_combining_mark;
use unicode_normalization::is_nfc;

/// Characters of a name.
pub const NAME_CHARACTERS_MAX: usize = 32;

/// Combining marks after one letter: what scripts need, and no towers of accents.
const MARKS_IN_A_ROW_MAX: usize = 2;

/// Marks and letters that show nothing (Unicode's Default_Ignorable_Code_Point, as far as they are marks or letters): with them
/// two names would look alike.
const INVISIBLE: [RangeInclusive<char>; 8] = [
    '\u{34f}'..='\u{34f}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{3164}'..='\u{3164}',
    '\u{fe00}'..='\u{fe0f}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{e0100}'..='\u{e01ef}',
];

/// Why a text is no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Empty, or more than 32 characters.
    #[error("not 1 to {NAME_CHARACTERS_MAX} characters")]
    Length,
    /// Something else than letters, digits, space and `_ - . '`.
    #[error("{0:?} is not allowed: letters, digits, space and _ - . ' are")]
    Character(char),
    /// A space at an end, or two in a row.
    #[error("a space at an end or two in a row")]
    Space,
    /// Not in Unicode's normal form C.
    #[error("not in normal form C")]
    NotNormal,
}

/// Checks a character's name: 1 to 32 letters of any script, digits, spaces and `_ - . '`, in NFC, no space at the ends or twice.
///
/// # Errors
/// The first broken rule.
pub fn check_name(name: &str) -> Result<(), NameError> {
    if !(1..=NAME_CHARACTERS_MAX).contains(&name.chars().take(NAME_CHARACTERS_MAX + 1).count()) {
        return Err(NameError::Length);
    }
    let mut marks = MARKS_IN_A_ROW_MAX;
    for character in name.chars() {
        if INVISIBLE.iter().any(|range| range.contains(&character)) {
            return Err(NameError::Character(character));
        } else if is_combining_mark(character) {
            marks += 1;
        } else if character.is_alphabetic() {
            marks = 0;
        } else if character.is_numeric() || matches!(character, ' ' | '_' | '-' | '.' | '\'') {
            marks = MARKS_IN_A_ROW_MAX;
        } else {
            return Err(NameError::Character(character));
        }
        if marks > MARKS_IN_A_ROW_MAX {
            return Err(NameError::Character(character));
        }
    }
    if name.starts_with(' ') || name.ends_with(' ') || name.contains("  ") {
        return Err(NameError::Space);
    }
    if !is_nfc(name) {
        return Err(NameError::NotNormal);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, expected: Result<(), NameError>) {
        assert_eq!(check_name(name), expected, "{name:?}");
    }

    #[test]
    fn names_of_any_script_and_nothing_else() {
        for name in [
            "Ann",
            "O'Neil-2.b_c",
            "Götz",
            "Ирина",
            "李小龙",
            "a b c",
            "कृष्ण",
            "نور",
            "7",
            &"x".repeat(32),
        ] {
            check(name, Ok(()));
        }
        check("", Err(NameError::Length));
        check(&"x".repeat(33), Err(NameError::Length));
        check(&"x".repeat(64 << 10), Err(NameError::Length));
        for (name, character) in [
            ("a\u{7}b", '\u{7}'),
            ("\u{1b}[31m", '\u{1b}'),
            ("a\u{202e}b", '\u{202e}'),
            ("a\u{200b}b", '\u{200b}'),
            ("a/b", '/'),
            ("a\0", '\0'),
            ("tab\tbed", '\t'),
            ("a\u{a0}b", '\u{a0}'),
            ("🙂", '🙂'),
            (" \u{301}a", '\u{301}'),
            ("q\u{301}\u{301}\u{301}", '\u{301}'),
            ("Ann\u{fe0f}", '\u{fe0f}'),
            ("a\u{34f}b", '\u{34f}'),
            ("\u{3164}", '\u{3164}'),
            ("\u{115f}\u{1160}", '\u{115f}'),
            ("\u{ffa0}", '\u{ffa0}'),
            ("\u{1820}\u{180b}", '\u{180b}'),
            ("葛\u{e0100}", '\u{e0100}'),
        ] {
            check(name, Err(NameError::Character(character)));
        }
        for name in [" a", "a ", "a  b", " "] {
            check(name, Err(NameError::Space));
        }
        check("e\u{301}", Err(NameError::NotNormal));
    }
}
