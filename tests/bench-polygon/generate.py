#!/usr/bin/env python3
"""Writes the maps and queries of the polygon benchmarks: star-200, holes-100 and holes-2000, each NAME.json with
NAME.queries.jsonl beside it. All coordinates are multiples of 1/64 m, so that 32-bit floats hold them exactly."""

import json
import math
import pathlib
import random

HERE = pathlib.Path(__file__).parent
QUERIES = 1000


def snap(value):
    return round(value * 64) / 64


def star(spikes):
    points = []
    for index in range(2 * spikes):
        radius = 60 if index % 2 == 0 else 20
        angle = math.pi * index / spikes
        points.append([snap(radius * math.cos(angle)), snap(radius * math.sin(angle))])
    return points


def holes(rng, columns, rows, left_out):
    """One quadrilateral in each cell of 4 m, turned as chance will have it; none in the last `left_out` cells."""
    polygons = []
    for index in range(columns * rows - left_out):
        x, z = 4 * (index % columns) + 2, 4 * (index // columns) + 2
        turn = rng.uniform(0, math.pi)
        polygons.append(
            [
                [snap(x + rng.uniform(0.8, 1.6) * math.cos(turn + a)), snap(z + rng.uniform(0.8, 1.6) * math.sin(turn + a))]
                for a in (0.0, math.pi / 2, math.pi, 3 * math.pi / 2)
            ]
        )
    return polygons


def inside(polygon, x, z):
    odd = False
    for (ax, az), (bx, bz) in zip(polygon, polygon[1:] + polygon[:1]):
        if (az > z) != (bz > z) and x < (bx - ax) * (z - az) / (bz - az) + ax:
            odd = not odd
    return odd


def write(name, rng, outer, obstacles):
    map_file = {
        "planner": "polygon",
        "inset": 0,
        "areas": [{"name": "ground", "polygon": outer}],
        "obstacles": [{"name": f"hole {i}", "polygon": p} for i, p in enumerate(obstacles)],
    }
    (HERE / f"{name}.json").write_text(json.dumps(map_file, separators=(",", ":")) + "\n")
    xs, zs = [p[0] for p in outer], [p[1] for p in outer]

    def free_point():
        while True:
            x, z = snap(rng.uniform(min(xs), max(xs))), snap(rng.uniform(min(zs), max(zs)))
            if inside(outer, x, z) and not any(inside(p, x, z) for p in obstacles):
                return [x, z]

    with (HERE / f"{name}.queries.jsonl").open("w") as out:
        for _ in range(QUERIES):
            out.write(json.dumps({"from": free_point(), "to": free_point(), "exact": True}) + "\n")


def main():
    rng = random.Random(7)
    write("star-200", rng, star(100), [])
    write("holes-100", rng, [[0, 0], [20, 0], [20, 20], [0, 20]], holes(rng, 5, 5, 1))
    write("holes-2000", rng, [[0, 0], [100, 0], [100, 80], [0, 80]], holes(rng, 25, 20, 1))


if __name__ == "__main__":
    main()
