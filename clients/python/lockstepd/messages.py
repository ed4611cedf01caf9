"""The messages of docs/PROTOCOL.md, in its order: a message is (name, fields)."""

from __future__ import annotations

from typing import Any

from .wire import (
    BOOL, FIXED, POINT, U8, U16, U32, U64, Blob, Enum, Exactly, InIdOrder, Option, Pair, Struct, Text, Vec,
)

Message = tuple[str, dict[str, Any]]

VERSION = 1
PACKED_STATES = 1 << 0
FRAME_BYTES_MAX = 1 << 20
CHARACTERS_MAX = 16_384
PART = Blob(65_536)
NAME = Text(128)
SHORT = Text(64)
EXPLANATION = Text(256)
WAYPOINTS = Vec(POINT, 4_096)
NOTHING = Struct()
PLACE = Struct(character=U32, x=FIXED, z=FIXED)
OWN = Struct(character=U32)

STEP = Enum([("MoveTo", Struct(x=FIXED, z=FIXED)), ("Stop", NOTHING), ("Talk", Struct(npc=U32))])
BEHAVIOUR = Enum([
    ("Idle", NOTHING),
    ("Patrol", Struct(points=Vec(POINT, 256), wait_ticks=U32, looped=BOOL)),
    ("Wander", Struct(x=FIXED, z=FIXED, radius=FIXED, pause_min=U32, pause_max=U32)),
    ("Follow", Struct(character=U32, distance=FIXED)),
    ("Script", Struct(steps=Vec(Struct(after_ticks=U32, step=STEP), 1_024))),
])
CHARACTER_SPEC = Struct(
    id=U32, name=NAME, x=FIXED, z=FIXED, speed_per_tick=FIXED, rotation_per_tick=FIXED, collision_radius=FIXED,
    movement_contact_radius=FIXED, cooldown_ticks=Option(Vec(U32, 64)), enabled=BOOL, alive=BOOL, behaviour=BEHAVIOUR,
)
COMMAND = Enum([
    ("MoveTo", PLACE),
    ("Stop", OWN),
    ("Talk", Struct(character=U32, npc=U32)),
    ("Join", Struct(name=NAME)),
    ("Leave", OWN),
    ("SpawnBot", CHARACTER_SPEC),
    ("SpawnNpc", CHARACTER_SPEC),
    ("Despawn", OWN),
    ("SetEnabled", Struct(character=U32, enabled=BOOL)),
    ("SetAlive", Struct(character=U32, alive=BOOL)),
    ("Teleport", PLACE),
    ("SetAreaAvailable", Struct(area=SHORT, available=BOOL)),
    ("AddObstacle", Struct(name=SHORT, polygon=Vec(POINT, 1_024))),
    ("RemoveObstacle", Struct(name=SHORT)),
    ("SwitchMap", Struct(map=SHORT)),
    ("SetBehaviour", Struct(character=U32, behaviour=BEHAVIOUR)),
    ("Application", Struct(character=U32, payload=Blob(512))),
])

ROLE = Enum((name, NOTHING) for name in ("Player", "Bot", "Watcher", "Admin"))
FEED = Enum((name, NOTHING) for name in ("Lockstep", "State", "Answers"))
AREA = Enum([
    ("All", NOTHING),
    ("Around", Struct(radius=FIXED)),
    ("Rectangle", Struct(min_x=FIXED, min_z=FIXED, max_x=FIXED, max_z=FIXED)),
])
VIEW = Struct(every=U8, area=AREA)
RESUME = Struct(session=U64, token=Exactly(16), run=Exactly(16), next_tick=U64, digest=U64)
NEED = Enum([("Send", NOTHING), ("Have", Struct(hash=Exactly(32))), ("No", NOTHING)])
HELLO = Struct(
    magic=Exactly(4), version=U16, features=U64, client=SHORT, location=SHORT, role=ROLE, feed=FEED, view=Option(VIEW),
    name=NAME, ticket=Option(Text(640)), resume=Option(RESUME), definition=NEED,
)
CLAIMS = Struct(
    key=Exactly(8), audience=SHORT, location=SHORT, subject=SHORT, name=NAME, role=ROLE, characters=Vec(U32, 64),
    not_before=U64, expires=U64, nonce=Exactly(16),
)
CLIENT = Enum([
    ("Hello", HELLO),
    ("Command", Struct(sequence=U64, at_tick=Option(U64), command=COMMAND)),
    ("Digest", Struct(tick=U64, digest=U64)),
    ("Resync", NOTHING),
    ("Ping", Struct(nonce=U64)),
    ("Goodbye", NOTHING),
    ("SetView", Struct(view=VIEW)),
    ("DesyncReport", Struct(tick=U64, part=U32, parts=U32, bytes=Blob(12_288))),
])

MAP_STATE = Struct(
    name=SHORT, available=Vec(BOOL, 4_096), removed=Vec(SHORT, 4_096), added=Vec(Pair(SHORT, Vec(POINT, 1_024)), 4_096)
)
WHO = Struct(kind=U8, name=NAME, collision_radius=FIXED, movement_contact_radius=FIXED, speed_per_tick=FIXED)
BLOCKAGE = Struct(movement_blocked_ticks=U32, blocked_by=Option(U32))
RETRY = Struct(navigation_retry_cursor=U32, navigation_retry_remaining=U32)
CHANGES = InIdOrder(U16, [
    ("position", POINT),
    ("yaw", FIXED),
    ("animation", U8),
    ("path", Struct(waypoints=WAYPOINTS, index=U32)),
    ("targets", Struct(walk_target=POINT, requested_walk_target=POINT)),
    ("blockage", BLOCKAGE),
    ("retry", RETRY),
    ("new_here", WHO),
    ("flags", U8),
    ("level", U8),
], whole=1 << 7)
PACKED_CHANGES = InIdOrder(U8, [
    ("position", POINT),
    ("yaw", FIXED),
    ("posture", U8),
    ("index", U32),
    ("route", Struct(waypoints=WAYPOINTS, walk_target=Option(POINT), requested_walk_target=Option(POINT))),
    ("blockage", BLOCKAGE),
    ("retry", RETRY),
    ("new_here", Struct(who=WHO, level=U8, step=POINT, turn=FIXED)),
], whole=1 << 7)
EVENT = Enum([
    ("Arrived", OWN),
    ("TalkStarted", Struct(character=U32, npc=U32)),
    ("CommandRejected", Struct(index=U32, code=U16)),
    ("Joined", OWN),
    ("Left", OWN),
    ("Application", Struct(character=U32, payload=Blob(512))),
])
GONE = Vec(U32, CHARACTERS_MAX)
SERVER = Enum([
    ("Reject", Struct(code=U16, min_version=U16, max_version=U16, message=EXPLANATION)),
    ("Welcome", Struct(
        version=U16, features=U64, run=Exactly(16), session=U64, token=Exactly(16), characters=Vec(U32, CHARACTERS_MAX),
        next_tick=U64, tick_rate=U16, ruleset=U32, ruleset_hash=U64, definition=Exactly(32), grace_ms=U32,
        last_sequence=U64,
    )),
    ("Definition", Struct(part=U32, parts=U32, bytes=PART)),
    ("Snapshot", Struct(tick=U64, part=U32, parts=U32, bytes=PART)),
    ("Turn", Struct(tick=U64, commands=Vec(COMMAND, 32_768), digest=U64)),
    ("State", Struct(tick=U64, base=Option(U64), map=Option(MAP_STATE), changed=CHANGES, gone=GONE)),
    ("Accepted", Struct(sequence=U64, tick=U64, index=U32, outcome=U16)),
    ("Refused", Struct(sequence=U64, code=U16, message=EXPLANATION)),
    ("Desync", Struct(
        tick=U64, expected=U64, clock=U64, map=U64, planner=U64, characters=Vec(Pair(U32, U64), CHARACTERS_MAX),
        want_report=BOOL,
    )),
    ("Event", Struct(tick=U64, event=EVENT)),
    ("Clock", Struct(base_tick=U64, base_us=U64, state=U8)),
    ("Pong", Struct(nonce=U64, server_us=U64)),
    ("Notice", Struct(text=Text(512))),
    ("Draining", Struct(code=U16, deadline_ms=U32)),
    ("Redirect", Struct(location=SHORT, address=Text(64), ticket=Text(640))),
    ("Close", Struct(code=U16, message=EXPLANATION)),
    ("PackedState", Struct(tick=U64, span=U64, map=Option(MAP_STATE), changed=PACKED_CHANGES, gone=GONE)),
])
