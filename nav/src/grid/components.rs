//! Static connected components (spec 2.3, rule 5).

use std::ops::Range;

use super::Cells;

const NONE: u32 = u32::MAX;

/// A label for every cell. A diagonal move needs both cardinal cells, so the moves of spec 2.4 connect exactly what the
/// four cardinal ones do.
#[derive(Debug)]
pub(crate) struct Components {
    labels: Vec<u32>,
    count: u32,
}

impl Components {
    /// Run by run, not cell by cell: runs of neighbouring rows that share a column are one component.
    pub(crate) fn of(cells: &Cells) -> Self {
        let mut runs: Vec<(u32, Range<u32>)> = Vec::new();
        // A run's parent is itself or an earlier run of its component.
        let mut parents: Vec<u32> = Vec::new();
        let mut row_before = 0;
        for z in 0..cells.depth() {
            let row = runs.len();
            let mut before = row_before;
            for columns in cells.runs(z) {
                let run = parents.len() as u32;
                parents.push(run);
                while before < row && runs[before].1.end <= columns.start {
                    before += 1;
                }
                let touching = runs[before..row]
                    .iter()
                    .take_while(|(_, above)| above.start < columns.end);
                for (offset, _) in touching.enumerate() {
                    join(&mut parents, (before + offset) as u32, run);
                }
                runs.push((z, columns));
            }
            row_before = row;
        }
        let width = cells.width() as usize;
        let mut labels = vec![NONE; width * cells.depth() as usize];
        // The first run of a component holds its smallest cell index, and runs are in the order of theirs.
        let mut count = 0;
        let mut run_labels: Vec<u32> = Vec::with_capacity(runs.len());
        for (run, (z, columns)) in runs.into_iter().enumerate() {
            let first = first_of(&mut parents, run as u32) as usize;
            let label = if first == run {
                count += 1;
                count - 1
            } else {
                run_labels[first]
            };
            run_labels.push(label);
            let row = z as usize * width;
            labels[row + columns.start as usize..row + columns.end as usize].fill(label);
        }
        Self { labels, count }
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn label(&self, index: u32) -> Option<u32> {
        let label = self.labels[index as usize];
        (label != NONE).then_some(label)
    }
}

/// The earliest run of a run's component; the way there is halved.
fn first_of(parents: &mut [u32], mut run: u32) -> u32 {
    while parents[run as usize] != run {
        let above = parents[parents[run as usize] as usize];
        parents[run as usize] = above;
        run = above;
    }
    run
}

fn join(parents: &mut [u32], one: u32, other: u32) {
    let (one, other) = (first_of(parents, one), first_of(parents, other));
    parents[one.max(other) as usize] = one.min(other);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The label of every cell as a character, `.` for a blocked one.
    #[track_caller]
    fn check(rows: &[&str], expected: &[&str]) {
        let width = rows[0].len() as u32;
        let bools: Vec<bool> = rows.concat().bytes().map(|byte| byte == b'1').collect();
        let components = Components::of(&Cells::from_bools(width, rows.len() as u32, &bools));
        let label = |index| {
            components
                .label(index)
                .map_or('.', |label| (b'a' + label as u8) as char)
        };
        let found: String = (0..bools.len() as u32).map(label).collect();
        assert_eq!(found, expected.concat());
    }

    #[test]
    fn components_are_numbered_by_their_first_cell() {
        check(&["000"], &["..."]);
        check(&["101", "010", "101"], &["a.b", ".c.", "d.e"]);
        // A comb joined at its last row, a ring with an island, and a component that begins after another one.
        check(&["10101", "10101", "11111"], &["a.a.a", "a.a.a", "aaaaa"]);
        check(
            &["11111", "10001", "10101", "10001", "11111"],
            &["aaaaa", "a...a", "a.b.a", "a...a", "aaaaa"],
        );
        check(
            &["0010", "1010", "1110", "0001"],
            &["..a.", "a.a.", "aaa.", "...b"],
        );
        check(
            &["1011101", "1010101", "1110111"],
            &["a.aaa.a", "a.a.a.a", "aaa.aaa"],
        );
    }
}
