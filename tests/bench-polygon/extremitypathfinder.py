#!/usr/bin/env python3
"""The polygon planner beside PyPI's extremitypathfinder, on the same maps and queries; not part of CI.

    pip install extremitypathfinder
    python3 extremitypathfinder.py PATH/TO/lockstepd [--queries N]

For star-200 and holes-100: `lockstepd path --queries` gives our lengths, which must equal the other's; the times are the other's
build and mean query, and ours from `lockstepd bench nav --planner polygon`. (holes-2000 takes the other minutes to build.)"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
# This file has the package's name: without its folder in front the package is found.
sys.path = [entry for entry in sys.path if pathlib.Path(entry or ".").resolve() != HERE]

from extremitypathfinder import PolygonEnvironment  # noqa: E402

MAPS = ["star-200", "holes-100"]
# Every link of ours is rounded up by less than 1/65536 m; the queries' coordinates are exact.
TOLERANCE_METRES = 64 / 65536


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lockstepd")
    parser.add_argument("--queries", type=int, default=200)
    arguments = parser.parse_args()
    bench = run([arguments.lockstepd, "bench", "nav", "--planner", "polygon", "--json"])
    ours = {row["map"]: row for row in bench}
    wrong = 0
    for name in MAPS:
        wrong += compare(arguments.lockstepd, name, arguments.queries, ours[name])
    sys.exit(1 if wrong else 0)


def run(command):
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in printed.splitlines()]


def compare(lockstepd, name, count, ours):
    map_file = HERE / f"{name}.json"
    parsed = json.loads(map_file.read_text())
    queries = [json.loads(line) for line in (HERE / f"{name}.queries.jsonl").read_text().splitlines()[:count]]
    answers = run([lockstepd, "path", str(map_file), "--queries", str(HERE / f"{name}.queries.jsonl"), "--json"])

    environment = PolygonEnvironment()
    start = time.perf_counter()
    environment.store(
        counter_clockwise(parsed["areas"][0]["polygon"]),
        [counter_clockwise(hole["polygon"])[::-1] for hole in parsed["obstacles"]],
        validate=False,
    )
    built = time.perf_counter() - start

    wrong, refused, spent = 0, 0, 0.0
    for query, answer in zip(queries, answers):
        start = time.perf_counter()
        try:
            _, length = environment.find_shortest_path(tuple(query["from"]), tuple(query["to"]))
        except ValueError:
            # It takes no start or end on an edge.
            refused += 1
            continue
        finally:
            spent += time.perf_counter() - start
        if length is None or abs(length - answer["cost"]) > TOLERANCE_METRES:
            wrong += 1
            print(f"{name}: from {query['from']} to {query['to']}: {answer['cost']} and {length}")
    print(
        f"{name}: {len(queries)} lengths, {wrong} differ, {refused} refused by the other; "
        f"build {ours['buildMilliseconds']:.2f} ms and {built * 1e3:.0f} ms, "
        f"query {ours['microsecondsPerQuery']:.2f} µs and {spent * 1e6 / len(queries):.0f} µs"
    )
    return wrong


def counter_clockwise(polygon):
    area = sum(ax * bz - bx * az for (ax, az), (bx, bz) in zip(polygon, polygon[1:] + polygon[:1]))
    return [tuple(point) for point in (polygon if area > 0 else polygon[::-1])]


if __name__ == "__main__":
    main()
