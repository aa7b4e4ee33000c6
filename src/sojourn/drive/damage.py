"""What repairing a capsule means: which lines leave the log, and what is missing then.

docs/format.md#repair. Nothing is decided by guess: what cannot be told apart is refused.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final

from sojourn.drive.reading import blob_or_none, ending_of
from sojourn.drive.rewrite import events_of, lines_of
from sojourn.errors import FormatError
from sojourn.format import layout
from sojourn.format.body import Head
from sojourn.format.capsule_kinds import Repaired
from sojourn.format.chains import ChainKey
from sojourn.format.damage import TEARABLE, Known
from sojourn.format.event import Event
from sojourn.format.failures import stops_running
from sojourn.format.line import LineReader
from sojourn.format.naming import named_by
from sojourn.format.pardons import MAX_WAITING
from sojourn.format.timeline_read import Damage, Ending, Reader
from sojourn.ids import BlobId, EventId
from sojourn.ports import Store

ASIDE: Final = (TEARABLE - {"chain_gap"}) | {
    "line_unended",
    "body_null",
    "body_malformed",
    "duplicate_event",
}
"""Failures of a line that leaves the log."""

TAILS: Final = frozenset(("log_shorter", "log_replaced"))
"""Failures that damage in the log accounts for as long as its end is there."""

GAPS: Final = frozenset(("chain_gap", "head_unknown", "log_altered", *TAILS))
"""Failures that recording what is missing accounts for."""

BLOBS: Final = frozenset(("blob_missing", "blob_size", "blob_altered"))
"""Failures of a blob that is recorded as lost."""

SHORTEST_LINE: Final = 400
"""Bytes; no line of a log is shorter, so a span holds at most one event for each begun one."""

END: Final = 1 << 62
"""An offset behind every log."""

PIECE: Final = layout.MAX_LARGE
"""Bytes that are set aside as one blob."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Places of a chain that are missing."""

    machine: str
    incarnation: str
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """Bytes of the log that are set aside: `line` is the first, from 1; `gap` what they held."""

    code: str
    line: int
    offset: int
    length: int
    gap: Gap | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LostBlob:
    """A blob that is not there, or with other bytes; `events` are those that name it."""

    blob: BlobId
    code: str
    events: tuple[EventId, ...]


@dataclass(slots=True, kw_only=True)
class Plan:
    """What a repair does: spans of the log, gaps without bytes, and blobs that are lost.

    `reserved` places at the end of the own chain are never used again.
    """

    spans: list[Aside] = field(default_factory=list[Aside])
    gaps: list[Gap] = field(default_factory=list[Gap])
    lost: list[LostBlob] = field(default_factory=list[LostBlob])
    tips: dict[ChainKey, int] = field(default_factory=dict[ChainKey, int])
    clock: int = 0
    reserved: int = 0


def plan_repair(
    store: Store, known: Sequence[Known], own: ChainKey, *, same_boot: bool
) -> tuple[Plan, Ending]:
    """What has to be done so that the log can be read without a failure.

    Raises: FormatError `repair_refused` for a failure that no repair can honestly take away.
    """
    damages, ending = _read(store, known, same_boot=same_boot)
    _refuse(damages)
    plan = Plan(clock=ending.clock)
    wrong = {damage.line: damage for damage in damages if damage.code in ASIDE}
    broken = [damage for damage in damages if damage.code == "chain_broken"]
    if broken:
        wrong |= _not_confirmed(store, broken, known)
    plan.spans = list(_spans(wrong.values()))
    if ending.torn is not None:
        torn = ending.torn
        plan.spans.append(
            Aside(code=torn.reason, line=torn.line, offset=torn.offset, length=torn.length)
        )
    gaps = _find_gaps(store, plan, known, own)
    tail = next((damage for damage in damages if damage.code in TAILS), None)
    if tail is not None and not gaps.explains():
        raise refused(tail.code, tail.message)
    plan.lost = _lost_blobs(store, ending)
    return plan, ending


def kept_lines(store: Store, spans: Sequence[Aside]) -> Iterator[tuple[int, bytes]]:
    """Offset and bytes of each line that stays."""
    ends = {span.offset: span.offset + span.length for span in spans}
    offset, until = 0, 0
    for line in lines_of(store):
        until = max(until, ends.get(offset, 0))
        if offset >= until:
            yield offset, line
        offset += len(line)


def kept_events(store: Store, spans: Sequence[Aside]) -> Iterator[tuple[int, Event]]:
    """Offset and event of each line that stays; those whose body is gone, too."""
    reader = LineReader(lambda ref: blob_or_none(store, ref))
    for offset, line in kept_lines(store, spans):
        result = reader.read(line.removesuffix(b"\n"))
        event = result if isinstance(result, Event) else result.event
        if event is not None:
            yield offset, event


def check_sound(pieces: Iterator[bytes], store: Store) -> None:
    """Read what is to become the log. Raises: FormatError `repair_refused` when it is not sound."""
    for damage in ending_of(pieces, store).damages:
        if stops_running(damage.code) and damage.code not in BLOBS:
            raise refused(damage.code, damage.message, damage.line)


def refused(code: str, message: str, line: int = 0) -> FormatError:
    """The error for what cannot be repaired."""
    hints = {
        "equivocation": "`sojourn claim` keeps both sides and goes on.",
        "divergence": "`sojourn claim` keeps both sides and goes on.",
        "log_shorter": "Put the newer folder back, or go on without with `sojourn claim`.",
        "log_replaced": "Put the newer folder back, or go on without with `sojourn claim`.",
    }
    return FormatError(
        f"this cannot be repaired: {message}",
        code="repair_refused",
        state=f"Nothing was changed. The failure is {code}.",
        hint=hints.get(code, "Put the file back from a copy, or fork from an event before it."),
        file=layout.TIMELINE,
        line=line or None,
    )


def _read(store: Store, known: Sequence[Known], *, same_boot: bool) -> tuple[list[Damage], Ending]:
    reader = Reader(known=known, read_blob=lambda ref: _any_bytes(store, ref.sha256))
    damages: list[Damage] = []
    for chunk in store.read_log():
        damages += [item for item in reader.feed(chunk) if isinstance(item, Damage)]
        if len(damages) >= MAX_WAITING:
            raise refused("damaged", "more lines are damaged than can be told apart")
    ending = reader.finish(same_boot=same_boot)
    damages += [item for item in ending.rest if isinstance(item, Damage)]
    return sorted(damages, key=lambda damage: damage.line), ending


def _any_bytes(store: Store, blob: BlobId) -> bytes | None:
    """A blob's bytes as they lie there, so that altered ones are told from missing ones."""
    return store.read_file(layout.blob_path(blob))


def _refuse(damages: Sequence[Damage]) -> None:
    handled = ASIDE | GAPS | BLOBS | {"chain_broken"}
    for damage in damages:
        if damage.code not in handled and stops_running(damage.code):
            raise refused(damage.code, damage.message, damage.line)
        if damage.line == 1:
            raise refused(damage.code, "the line that made the capsule is damaged", 1)


def _not_confirmed(
    store: Store, broken: Sequence[Damage], known: Sequence[Known]
) -> Mapping[int, Damage]:
    """Of an event and the one before it, which do not fit, those that nothing else names.

    Raises: FormatError `repair_refused` when both are named.
    """
    pairs: list[tuple[tuple[int, EventId], tuple[int, EventId], Damage]] = []
    named: set[EventId] = {head.id for mark in known for head in mark.heads or ()}
    named |= {mark.last for mark in known if mark.last is not None}
    tips: dict[ChainKey, tuple[int, EventId]] = {}
    at = {damage.line: damage for damage in broken}
    for number, (_, event) in enumerate(events_of(store), 1):
        if not isinstance(event, Event):
            continue
        key = (event.header.machine, event.header.incarnation)
        if number in at and key in tips:
            pairs.append((tips[key], (number, event.id), at[number]))
        tips[key] = (number, event.id)
    wanted = {one[1] for before, after, _ in pairs for one in (before, after)}
    for _, event in events_of(store):
        if isinstance(event, Event):
            heads: tuple[Head, ...] = getattr(event.body, "heads", ())
            named |= wanted & {event.header.prev, *(head.id for head in heads)}
    wrong: dict[int, Damage] = {}
    for before, after, damage in pairs:
        unsure = [one for one in (before, after) if one[1] not in named]
        if not unsure:
            raise refused(damage.code, "two lines that do not fit are both named", damage.line)
        offsets = _offsets(store, {number for number, _ in unsure})
        for number, _ in unsure:
            offset, length = offsets[number]
            wrong[number] = replace(damage, line=number, offset=offset, length=length)
    return wrong


def _offsets(store: Store, numbers: set[int]) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    offset = 0
    for number, line in enumerate(lines_of(store), 1):
        if number in numbers:
            found[number] = (offset, len(line))
        offset += len(line)
    return found


def _spans(wrong: Iterable[Damage]) -> Iterator[Aside]:
    """Neighbouring lines of one failure together, in pieces that are not too large."""
    current: Aside | None = None
    for damage in sorted(wrong, key=lambda damage: damage.offset):
        for offset in range(damage.offset, damage.offset + damage.length, PIECE):
            length = min(PIECE, damage.offset + damage.length - offset)
            joins = (
                current is not None
                and current.code == damage.code
                and current.offset + current.length == offset
                and current.length + length <= PIECE
            )
            if current is not None and joins:
                current = replace(current, length=current.length + length)
                continue
            if current is not None:
                yield current
            current = Aside(code=damage.code, line=damage.line, offset=offset, length=length)
    if current is not None:
        yield current


@dataclass(slots=True)
class _Gaps:
    """Finds which places are missing in each chain once the spans are gone."""

    plan: Plan
    at: dict[ChainKey, int] = field(default_factory=dict[ChainKey, int])
    recorded: list[Gap] = field(default_factory=list[Gap])
    ids: set[EventId] = field(default_factory=set[EventId])

    def explains(self) -> bool:
        """Whether the events are there that the log ended with, or bytes that may be them."""
        if not self.ids:
            return True
        last = max(self.at.values(), default=-1)
        return any(span.offset > last for span in self.plan.spans)

    def take(self, offset: int, event: Event) -> None:
        """Take in an event that stays."""
        key = (event.header.machine, event.header.incarnation)
        tip, seq = self.plan.tips.get(key, -1), int(event.header.seq)
        if seq > tip + 1:
            self.add(key, tip + 1, seq - 1, self.at.get(key, 0), offset)
        self.plan.tips[key] = max(tip, seq)
        self.at[key] = offset
        self.ids.discard(event.id)
        for head in getattr(event.body, "heads", ()):
            self.tail(head, offset)

    def tail(self, head: Head, offset: int) -> None:
        """A head that is not there says that its chain went on up to it."""
        key = (head.machine, head.incarnation)
        tip = self.plan.tips.get(key, -1)
        if head.seq > tip:
            self.add(key, tip + 1, int(head.seq), self.at.get(key, 0), offset)
            self.plan.tips[key] = int(head.seq)

    def add(self, key: ChainKey, first: int, last: int, start: int, end: int) -> None:
        """A gap, told with the one span between `start` and `end`, when it is only one."""
        gap = Gap(machine=key[0], incarnation=key[1], first=first, last=last)
        if any(
            (one.machine, one.incarnation) == key and one.first <= first and last <= one.last
            for one in self.recorded
        ):
            return
        spans = self.plan.spans
        held = [
            at
            for at, span in enumerate(spans)
            if start <= span.offset < end and span.gap is None and span.code != "duplicate_event"
        ]
        if len(held) == 1:
            spans[held[0]] = replace(spans[held[0]], gap=gap)
        else:
            self.plan.gaps.append(gap)


def _find_gaps(store: Store, plan: Plan, known: Sequence[Known], own: ChainKey) -> _Gaps:
    gaps = _Gaps(plan)
    gaps.ids = {mark.last for mark in known if mark.last is not None}
    gaps.ids |= {head.id for mark in known for head in mark.heads or ()}
    for _, event in kept_events(store, plan.spans):
        if isinstance(event.body, Repaired) and event.body.machine is not None:
            gaps.recorded.append(_recorded(event.body))
    for offset, event in kept_events(store, plan.spans):
        gaps.take(offset, event)
    real = plan.tips.get(own, -1)
    for mark in known:
        for head in mark.heads or ():
            gaps.tail(head, END)
    floor = max((mark.length for mark in known if mark.heads is not None), default=0)
    after = 0
    for span in plan.spans:
        beyond = span.offset + span.length - max(span.offset, floor)
        if beyond > 0 and span.offset >= gaps.at.get(own, 0) and span.code != "duplicate_event":
            after += 1 + beyond // SHORTEST_LINE
    if after:
        first = plan.tips.get(own, -1) + 1
        gaps.add(own, first, first + after - 1, gaps.at.get(own, 0), END)
        plan.tips[own] = first + after - 1
    plan.reserved = plan.tips.get(own, -1) - real
    return gaps


def _recorded(body: Repaired) -> Gap:
    return Gap(
        machine=body.machine or "",
        incarnation=body.incarnation or "",
        first=int(body.first or 0),
        last=-1 if body.last is None else int(body.last),
    )


def _lost_blobs(store: Store, ending: Ending) -> list[LostBlob]:
    """Blobs that are named and are not there as they were."""
    names: dict[BlobId, list[EventId]] = {}
    sound: set[BlobId] = set()
    gone = ending.gone
    for line, result in events_of(store):
        event = result if isinstance(result, Event) else result.event
        if event is None:
            continue
        for blob in named_by(line, event, lambda ref: blob_or_none(store, ref)):
            if blob in sound or not layout.is_blob_name(blob):
                continue
            if blob in names or not _is_sound(store, blob):
                names.setdefault(blob, []).append(event.id)
            else:
                sound.add(blob)
    lost: list[LostBlob] = []
    for blob, events in names.items():
        there = store.has_blob(blob)
        if there or blob not in gone:
            code = "blob_altered" if there else "blob_missing"
            lost.append(LostBlob(blob=blob, code=code, events=tuple(dict.fromkeys(events))))
    return lost


def _is_sound(store: Store, blob: BlobId) -> bool:
    data = _any_bytes(store, blob)
    return data is not None and sha256(data).hexdigest() == blob
