"""What a State feed shows, put together from its differences; plain and packed."""

from __future__ import annotations

from typing import Any

from .wire import WireError

Character = dict[str, Any]
FLAGS = ("alive", "enabled", "moved_last_tick", "search_ran_out")
KINDS = ("player", "bot", "npc")
ANIMATIONS = ("stand", "walk", "jump", "fall")


def wrapped(value: int) -> int:
    """Modulo 2³² into the range of an i32."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def add(point: tuple[int, int], difference: tuple[int, int]) -> tuple[int, int]:
    return wrapped(point[0] + difference[0]), wrapped(point[1] + difference[1])


class Observer:
    """The characters in view after the last State, each with the fields that `replay --print state --json` has.

    Positions, yaws and radii are raw values: metres and radians × 65,536.
    """

    def __init__(self) -> None:
        self.tick: int | None = None
        self.map: dict[str, Any] | None = None
        self.characters: dict[int, Character] = {}
        # Packed states: by how much each moved and turned last.
        self.motions: dict[int, tuple[tuple[int, int], int]] = {}

    def apply(self, name: str, state: dict[str, Any]) -> None:
        """Applies a State or a PackedState."""
        packed = name == "PackedState"
        span = state["span"] if packed else 0
        base = (state["tick"] - span if span else None) if packed else state["base"]
        if base is None:
            self.characters.clear()
            self.motions.clear()
        elif base != self.tick:
            raise WireError(f"a difference to tick {base} where tick {self.tick} is known")
        if state["map"] is not None:
            self.map = state["map"]
        for gone in state["gone"]:
            del self.characters[gone]
            self.motions.pop(gone, None)
        if packed:
            self.go_on(span)
        for change in state["changed"]:
            (self.correct if packed else self.change)(change)
        self.characters = dict(sorted(self.characters.items()))
        self.tick = state["tick"]

    def change(self, change: dict[str, Any]) -> None:
        if "new_here" in change:
            character = self.newcomer(change["id"], change["new_here"])
        else:
            character = self.characters[change["id"]]
        self.move(character, change.get("position", (0, 0)), change.get("yaw", 0))
        if "animation" in change:
            character["animation"] = ANIMATIONS[change["animation"]]
        if "flags" in change:
            self.set_flags(character, change["flags"])
        if "path" in change:
            character["path_waypoints"] = change["path"]["waypoints"]
            character["current_waypoint_index"] = change["path"]["index"]
        if "level" in change:
            character["level"] = change["level"]
        for group in ("targets", "blockage", "retry"):
            character.update(change.get(group, {}))

    def go_on(self, span: int) -> None:
        """What is expected of everybody: the same step, the same turn, a retry nearer by the ticks that passed."""
        for number, character in self.characters.items():
            step, turn = self.motions[number]
            self.move(character, step, turn)
            remaining = character["navigation_retry_remaining"]
            character["navigation_retry_remaining"] = max(0, remaining - span)

    def correct(self, change: dict[str, Any]) -> None:
        number = change["id"]
        step, turn = change.get("position", (0, 0)), change.get("yaw", 0)
        if "new_here" in change:
            new = change["new_here"]
            character = self.newcomer(number, new["who"])
            character["level"] = new["level"]
            self.motions[number] = (new["step"], new["turn"])
        else:
            character = self.characters[number]
            before = self.motions[number]
            self.motions[number] = (add(before[0], step), wrapped(before[1] + turn))
        self.move(character, step, turn)
        if "posture" in change:
            character["animation"] = ANIMATIONS[change["posture"] >> 4]
            self.set_flags(character, change["posture"] & 15)
        if "index" in change:
            character["current_waypoint_index"] = change["index"]
        if "route" in change:
            route = change["route"]
            usual = route["waypoints"][-1] if route["waypoints"] else character["position"]
            target = usual if route["walk_target"] is None else route["walk_target"]
            requested = route["requested_walk_target"]
            character["path_waypoints"] = route["waypoints"]
            character["walk_target"] = target
            character["requested_walk_target"] = target if requested is None else requested
        character.update(change.get("blockage", {}))
        character.update(change.get("retry", {}))

    def newcomer(self, number: int, who: dict[str, Any]) -> Character:
        character = {"id": number, "position": (0, 0), "yaw": 0, **who, "kind": KINDS[who["kind"]]}
        character["walk_speed"] = character.pop("speed_per_tick")
        self.characters[number] = character
        return character

    @staticmethod
    def move(character: Character, step: tuple[int, int], turn: int) -> None:
        character["position"] = add(character["position"], step)
        character["yaw"] = wrapped(character["yaw"] + turn)

    @staticmethod
    def set_flags(character: Character, flags: int) -> None:
        character.update({name: bool(flags >> bit & 1) for bit, name in enumerate(FLAGS)})
