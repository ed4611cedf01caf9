//! Random maps from a seed: on a small lattice, where everything touches everything, and anywhere.

use crate::geometry::Polygon;
use crate::map_file::{Area, Obstacle};
use crate::{Fixed, Point};

/// SplitMix64.
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 to `count` − 1.
    pub(super) fn below(&mut self, count: u32) -> u32 {
        ((u128::from(self.next()) * u128::from(count)) >> 64) as u32
    }

    /// From `low` to `high`.
    pub(super) fn between(&mut self, low: i32, high: i32) -> i32 {
        low + self.below((high - low + 1) as u32) as i32
    }

    pub(super) fn shuffle<T>(&mut self, list: &mut [T]) {
        for index in (1..list.len()).rev() {
            list.swap(index, self.below(index as u32 + 1) as usize);
        }
    }
}

/// A map to test.
#[derive(Clone, Debug)]
pub(super) struct RandomMap {
    pub(super) areas: Vec<Area>,
    pub(super) obstacles: Vec<Obstacle>,
    /// Points are in −size … size, at multiples of `unit` raw.
    pub(super) size: i32,
    pub(super) unit: i32,
}

impl RandomMap {
    /// Even seeds: a lattice. Odd ones: anywhere, some over half the world.
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let (size, unit) = match seed % 8 {
            0 | 2 | 4 | 6 => (8, 1 << (10 + seed / 2 % 8)),
            // As far as the reference's numbers reach: 8 km.
            7 => (1 << 29, 1),
            _ => (1 << 20, 1),
        };
        let mut map = Self {
            areas: Vec::new(),
            obstacles: Vec::new(),
            size,
            unit,
        };
        for index in 0..random.between(1, 4) {
            let polygon = map.polygon(&mut random, if index == 0 { 1 } else { 2 });
            map.areas.push(Area {
                name: format!("area {index}"),
                available: random.below(8) > 0,
                polygon,
            });
        }
        for index in 0..random.between(2, 12) {
            let polygon = map.polygon(&mut random, 5);
            map.obstacles.push(Obstacle {
                name: format!("obstacle {index}"),
                polygon,
            });
        }
        map
    }

    /// A point that is free, if some tries give one.
    pub(super) fn free_point(&self, random: &mut Random, is_free: impl Fn(Point) -> bool) -> Point {
        let mut tries = (0..50).map(|_| self.point(random));
        let free = tries.find(|&point| is_free(point));
        free.unwrap_or_else(|| self.point(random))
    }

    pub(super) fn point(&self, random: &mut Random) -> Point {
        let x = random.between(-self.size, self.size) * self.unit;
        Point::from_raw(x, random.between(-self.size, self.size) * self.unit)
    }

    /// A simple polygon about 1 / `parts` as large as the map: of one part as large as it.
    pub(super) fn polygon(&self, random: &mut Random, parts: i32) -> Polygon {
        let reach = (self.size / parts).max(1);
        loop {
            let (x, z) = if parts == 1 {
                (0, 0)
            } else {
                let x = random.between(-self.size, self.size);
                (x, random.between(-self.size, self.size))
            };
            let offset = |random: &mut Random| random.between(-reach, reach);
            let mut corners: Vec<(i32, i32)> = Vec::new();
            if random.below(2) == 0 {
                let (a, b) = (offset(random), offset(random));
                let (c, d) = (offset(random), offset(random));
                corners.extend([(x + a, z + b), (x + c, z + b), (x + c, z + d), (x + a, z + d)]);
                if parts == 1 && (a - c).abs().min((b - d).abs()) < reach {
                    continue;
                }
            } else {
                let count = if parts == 1 {
                    random.between(8, 20)
                } else {
                    random.between(3, 8)
                };
                for _ in 0..count {
                    corners.push((x + offset(random), z + offset(random)));
                }
                if parts == 1 || random.below(2) == 0 {
                    sort_around(&mut corners, (x, z));
                }
            }
            let limit = |value: i32| value.clamp(-self.size, self.size) * self.unit;
            let points: Vec<Point> = corners
                .iter()
                .map(|&(x, z)| Point::from_raw(limit(x), limit(z)))
                .collect();
            if let Ok(polygon) = Polygon::new(&points) {
                return polygon;
            }
        }
    }

    /// The same polygons from other vertices on, the other way round, in another order.
    pub(super) fn shuffled(&self, random: &mut Random) -> Self {
        let mut map = self.clone();
        let turn = |polygon: &mut Polygon, random: &mut Random| {
            let mut vertices = polygon.vertices().to_vec();
            let shift = random.below(vertices.len() as u32) as usize;
            vertices.rotate_left(shift);
            if random.below(2) == 0 {
                vertices.reverse();
            }
            *polygon = Polygon::new(&vertices).expect("the same outline");
        };
        for area in &mut map.areas {
            turn(&mut area.polygon, random);
        }
        for obstacle in &mut map.obstacles {
            turn(&mut obstacle.polygon, random);
        }
        random.shuffle(&mut map.areas);
        random.shuffle(&mut map.obstacles);
        map
    }

    /// Some insets, ascending.
    pub(super) fn insets(&self, random: &mut Random) -> Vec<Fixed> {
        let step = self.size * self.unit / 40;
        match random.below(3) {
            0 => vec![Fixed::ZERO],
            1 => vec![Fixed::from_raw(step)],
            _ => vec![Fixed::from_raw(step / 3 + 1), Fixed::from_raw(3 * step + 2)],
        }
    }
}

fn sort_around(corners: &mut [(i32, i32)], (x, z): (i32, i32)) {
    corners.sort_by(|one, other| {
        let vector = |corner: &(i32, i32)| {
            super::super::exact::Vector::new((corner.0 - x).into(), (corner.1 - z).into())
        };
        vector(one).compare_angle(vector(other))
    });
}
