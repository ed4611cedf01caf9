//! From the pieces of an arrangement to a border: vertices with their sectors, the index, the parts.

use super::super::arrangement::{Outline, Piece, Place, border_pieces};
use super::super::cells::Cells;
use super::super::exact::{Sector, Spot, Vector};
use super::{Border, Edge, Location, NO_PART, Vertex, VertexSector};
use crate::Point;
use crate::geometry::Bounds;

impl Border {
    /// The border of the free space of some polygons that have been checked.
    pub(in crate::polygon) fn new(outlines: &[Outline<'_>]) -> Self {
        let (places, pieces) = border_pieces(outlines);
        let mut border = Self::default();
        border.take_pieces(&places, &pieces);
        border.join_sectors();
        border.index();
        border.find_parts();
        let cells = border.cells.each().map(|(point, list)| {
            let is_empty = list.is_empty();
            if is_empty {
                border.locate_point(point)
            } else {
                Location::Outside
            }
        });
        border.empty_cells = cells.collect();
        border
    }

    /// Keeps the places that pieces use.
    fn take_pieces(&mut self, places: &[Place], pieces: &[Piece]) {
        const UNUSED: u32 = u32::MAX;
        let mut numbers = vec![UNUSED; places.len()];
        for piece in pieces {
            numbers[piece.from as usize] = 0;
            numbers[piece.to as usize] = 0;
        }
        for (number, &place) in numbers.iter_mut().zip(places) {
            if *number == UNUSED {
                continue;
            }
            *number = self.vertices.len() as u32;
            self.vertices.push(Vertex {
                place,
                floor: match place {
                    Place::Raw(point) => point,
                    Place::Between(spot) => spot.floor(),
                },
                ceiling_z: match place {
                    Place::Raw(point) => point.z.raw(),
                    Place::Between(spot) => spot.floor().z.raw() + i32::from(spot.z % spot.w != 0),
                },
                first: 0,
                count: 0,
            });
        }
        let ends = |piece: &Piece| match [piece.from, piece.to].map(|place| &places[place as usize]) {
            [&Place::Raw(from), &Place::Raw(to)] => Some([from, to]),
            _ => None,
        };
        self.edges = pieces
            .iter()
            .map(|piece| Edge {
                start: piece.start,
                along: piece.along,
                from: numbers[piece.from as usize],
                to: numbers[piece.to as usize],
                part: NO_PART,
                ends: ends(piece),
            })
            .collect();
    }

    /// Sorts the edges around each vertex; between one that begins and the next one that ends, counter-clockwise, is free.
    fn join_sectors(&mut self) {
        struct Ray {
            vertex: u32,
            direction: Vector,
            edge: u32,
            begins: bool,
        }
        let mut rays: Vec<Ray> = Vec::with_capacity(2 * self.edges.len());
        for (index, edge) in (0..).zip(&self.edges) {
            for (vertex, direction, begins) in [(edge.from, edge.along, true), (edge.to, -edge.along, false)]
            {
                rays.push(Ray {
                    vertex,
                    direction,
                    edge: index,
                    begins,
                });
            }
        }
        rays.sort_unstable_by(|one, other| {
            one.vertex
                .cmp(&other.vertex)
                .then_with(|| one.direction.compare_angle(other.direction))
        });
        self.sectors.reserve(self.edges.len());
        for rays in rays.chunk_by(|one, other| one.vertex == other.vertex) {
            let vertex = &mut self.vertices[rays[0].vertex as usize];
            vertex.first = self.sectors.len() as u32;
            for (rank, ray) in rays.iter().enumerate() {
                let next = &rays[(rank + 1) % rays.len()];
                assert!(
                    ray.begins != next.begins,
                    "free and wall alternate around a vertex"
                );
                if ray.begins {
                    self.sectors.push(VertexSector {
                        sector: Sector {
                            from: ray.direction,
                            to: next.direction,
                        },
                        outgoing: ray.edge,
                        incoming: next.edge,
                    });
                }
            }
            vertex.count = self.sectors.len() as u32 - vertex.first;
        }
    }

    fn index(&mut self) {
        let pieces: Vec<(Point, Vector, Bounds)> = self
            .edges
            .iter()
            .map(|edge| {
                let ends = [edge.from, edge.to].map(|vertex| self.vertices[vertex as usize].floor);
                let bounds = Bounds::around(ends).expect("two ends");
                (edge.start, edge.along, bounds)
            })
            .collect();
        self.cells = Cells::new(&pieces);
    }

    /// Numbers the parts: edges that follow each other along the border bound one part, and so does a border that surrounds
    /// others with the borders right inside it.
    fn find_parts(&mut self) {
        let mut next = vec![0; self.edges.len()];
        for sector in &self.sectors {
            next[sector.incoming as usize] = sector.outgoing;
        }
        // Each cycle of edges under the number of its first.
        let mut cycles: Vec<u32> = Vec::new();
        for first in 0..self.edges.len() as u32 {
            if self.edges[first as usize].part != NO_PART {
                continue;
            }
            let mut index = first;
            while self.edges[index as usize].part == NO_PART {
                self.edges[index as usize].part = cycles.len() as u32;
                index = next[index as usize];
            }
            cycles.push(first);
        }
        let surrounding: Vec<u32> = (0u32..)
            .zip(&cycles)
            .map(|(cycle, &first)| self.surrounding_cycle(cycle, first, &next))
            .collect();
        for edge in &mut self.edges {
            // A chain of cycles ends at the one that bounds the part from outside.
            while edge.part != NO_PART && surrounding[edge.part as usize] != edge.part {
                edge.part = surrounding[edge.part as usize];
            }
        }
    }

    /// The cycle that bounds the same part to the left of this one: itself if the part lies inside it; [`NO_PART`] if no
    /// horizontal line of raw points crosses it.
    fn surrounding_cycle(&self, cycle: u32, first: u32, next: &[u32]) -> u32 {
        let edges = || {
            let following = move |&index: &u32| Some(next[index as usize]).filter(|&index| index != first);
            std::iter::successors(Some(first), following)
        };
        let bottom = edges()
            .map(|index| {
                let spot = self.spot(self.edges[index as usize].from);
                -(-spot.z).div_euclid(spot.w)
            })
            .min()
            .expect("a cycle has edges");
        let line = Spot {
            x: 0,
            z: bottom,
            w: 1,
        };
        let leftmost = edges()
            .filter(|&index| self.spans(index, &line))
            .min_by(|&one, &other| self.compare_crossings(one, other, &line));
        let Some(leftmost) = leftmost else {
            return NO_PART;
        };
        if self.edges[leftmost as usize].along.z < 0 {
            return cycle;
        }
        let (x, scale) = self.crossing(leftmost, &line);
        let spot = Spot {
            x,
            z: bottom * scale,
            w: scale,
        };
        let mut nearest: Option<u32> = None;
        self.cells.leftward(spot.floor(), |list, _, least_x| {
            for &index in list {
                if index != leftmost
                    && self.spans(index, &line)
                    && self.compare_crossings(index, leftmost, &line).is_lt()
                    && nearest.is_none_or(|other| self.compare_crossings(other, index, &line).is_lt())
                {
                    nearest = Some(index);
                }
            }
            nearest.is_some_and(|index| {
                let (x, scale) = self.crossing(index, &line);
                x >= i128::from(least_x) * scale
            })
        });
        nearest.map_or(NO_PART, |index| self.edges[index as usize].part)
    }
}
