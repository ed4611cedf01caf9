//! Static connected components (spec 2.3, rule 5).

use super::Lines;

const NONE: u32 = u32::MAX;

/// A label for every cell. A diagonal move needs both cardinal cells, so the moves of spec 2.4 connect exactly what the
/// four cardinal ones do.
#[derive(Debug)]
pub(crate) struct Components {
    labels: Vec<u32>,
    count: u32,
}

impl Components {
    pub(crate) fn of(rows: &Lines, width: u32, depth: u32) -> Self {
        let mut labels = vec![NONE; width as usize * depth as usize];
        let mut count = 0;
        let mut stack: Vec<(u32, u32)> = Vec::new();
        for z in 0..depth {
            for x in 0..width {
                if !rows.get(z, x) || labels[(z * width + x) as usize] != NONE {
                    continue;
                }
                labels[(z * width + x) as usize] = count;
                stack.push((x, z));
                while let Some((x, z)) = stack.pop() {
                    for (dx, dz) in [(1, 0), (-1, 0), (0, 1), (0, -1)] {
                        let (x, z) = (x as i32 + dx, z as i32 + dz);
                        if rows.get_signed(z, x) {
                            let label = &mut labels[(z as u32 * width + x as u32) as usize];
                            if *label == NONE {
                                *label = count;
                                stack.push((x as u32, z as u32));
                            }
                        }
                    }
                }
                count += 1;
            }
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
