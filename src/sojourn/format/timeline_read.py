"""The log as events: reads, checks and tells a torn tail from damage (docs/format.md#torn-tail).

One reader for opening, looking, moving and verifying. Bytes are pushed in, memory is bounded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeAlias

from sojourn.format import layout
from sojourn.format.body import Head
from sojourn.format.chains import PARDONING, ChainEnd, ChainKey, Chains
from sojourn.format.damage import TEARABLE, Damage, Digest, Known, Torn
from sojourn.format.event import Event
from sojourn.format.failures import Code, say, stops_running
from sojourn.format.gone import Gone
from sojourn.format.line import Bad, LineReader, ReadBlob, split
from sojourn.format.pardons import BODILESS, PARDONABLE, Pardons, Waiting, waiting_for
from sojourn.ids import CapsuleId, Clock, Epoch, EventId

Item: TypeAlias = Event | Damage


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What is known when the whole log was read.

    `rest` is what only the end could decide, to be taken like what `feed` gave, `rest_lines` the
    line of each, 0 for the whole file. `length` is that of the log without a torn tail and without
    a last line that has no end, `digest` runs over it. `damages` are the first 1,000 of `damaged`,
    `sides` the heads of all sides of all chains, `epochs` the highest of each capsule. What other
    lines account for is no damage; `gone` is what they name.
    """

    rest: tuple[Item, ...]
    rest_lines: tuple[int, ...]
    length: int
    lines: int
    events: int
    chains: tuple[ChainEnd, ...]
    heads: tuple[Head, ...]
    sides: tuple[Head, ...]
    last: EventId | None
    clock: Clock
    epochs: Mapping[CapsuleId, Epoch]
    identities: tuple[EventId, ...]
    digest: Digest
    torn: Torn | None
    damages: tuple[Damage, ...]
    damaged: int
    run_allowed: bool
    gone: Gone


@dataclass(slots=True)
class _Held:
    """Lines from a bad one on, until it is known whether a later batch follows."""

    reason: Code
    lines: list[bytes]
    size: int
    batch: tuple[ChainKey, int] | None


class Reader:
    """Takes a log in chunks and gives its events and damages in the order of the lines.

    `known` is what manifest and ledger know of it; `read_blob` is asked only for bodies that lie
    in a blob whole. The `Damage` of a line stands before its event, where there is one; one that
    another line may account for comes with the end, when nothing did.
    """

    def __init__(self, *, known: Sequence[Known] = (), read_blob: ReadBlob) -> None:
        self._line_reader = LineReader(read_blob)
        self._chains = Chains()
        self._pardons = Pardons()
        self._null: Waiting | None = None
        self._known = tuple(known)
        self._floor = max((mark.length for mark in known), default=0)
        self._marks = sorted({mark.length for mark in known})
        self._wrong: dict[Known, Code] = {}
        self._data = b""
        self._data_at = 0
        self._tail = b""
        self._digest = sha256()
        self._sound = self._digest
        self._hashed = 0
        self._offset: int = 0
        self._lines: int = 0
        self._events = 0
        self._held: _Held | None = None
        self._skipped = 0
        self._found: list[Item] = []
        self._numbers: list[int] = []
        self._damages: list[Damage] = []
        self._damaged = 0
        self._run_allowed = True
        self._pass_marks()

    def feed(self, chunk: bytes) -> list[Item]:
        """What the bytes complete; chunks of about 64 KiB are quickest: they stay in the cache."""
        return self.numbered(chunk)[1]

    def numbered(self, chunk: bytes) -> tuple[list[int], list[Item]]:
        """As `feed`, and the line of each, from 1; 0 for the whole file."""
        if self._skipped:
            chunk = self._skip(chunk)
        end = chunk.rfind(b"\n") + 1
        if end:
            self._data = self._tail + chunk[:end]
            self._data_at = self._offset + (self._held.size if self._held else 0)
            self._tail = chunk[end:]
            self._take(split(self._data))
        else:
            self._tail += chunk
        if self._held is None:
            self._hash_to(self._offset)
        if len(self._tail) > layout.MAX_BATCH:
            self._begin_to_skip()
        return self._give()

    def finish(self, *, same_boot: bool) -> Ending:
        """Say how the log ends; `same_boot` when the machine ran on since the last append."""
        torn = self._find_torn(same_boot=same_boot)
        if torn is None:
            self._release()
            torn = self._find_torn(same_boot=True)
            length = len(self._tail) + self._skipped
            if torn is None and length:
                self._damage("line_unended", line=self._lines + 1, length=length)
        self._decide()
        self._check_marks()
        numbers, rest = self._give()
        return Ending(
            rest=tuple(rest),
            rest_lines=tuple(numbers),
            length=self._offset,
            lines=self._lines,
            events=self._events,
            chains=self._chains.ends(),
            heads=self._chains.heads(),
            sides=self._chains.sides(),
            last=None if self._chains.last is None else self._chains.last.id,
            clock=self._chains.clock,
            epochs=self._chains.epochs,
            identities=tuple(self._chains.identities),
            digest=self._sound if self._skipped else self._digest,
            torn=torn,
            damages=tuple(sorted(self._damages, key=lambda damage: damage.line or 1 << 53)),
            damaged=self._damaged,
            run_allowed=self._run_allowed,
            gone=self._pardons.gone,
        )

    def _give(self) -> tuple[list[int], list[Item]]:
        found = self._numbers, self._found
        self._numbers, self._found = [], []
        return found

    def _take(self, lines: list[bytes]) -> None:
        """The quick way for sound lines; all others go through `_take_slowly`."""
        results = self._line_reader.read_all(lines)
        # Where a mark lies among the lines, each is taken alone.
        far = not self._marks or self._data_at + len(self._data) < self._marks[0]
        at = 0
        while at < len(lines):
            end = len(lines) if far else at + 1
            sound = [] if self._held else self._chains.follow(results, at, end)
            count = len(sound)
            if count:
                self._found += sound
                self._numbers += range(self._lines + 1, self._lines + count + 1)
                self._lines, self._events = self._lines + count, self._events + count
                self._offset += sum(map(len, lines[at : at + count])) + count
            else:
                self._take_slowly(lines[at], results[at])
            at += count or 1
            self._pass_marks()

    def _take_slowly(self, line: bytes, result: Event | Bad) -> None:
        if self._held is not None:
            self._take_while_held(line, result)
        else:
            self._settle(line, result, hold=self._offset >= self._floor)

    def _take_while_held(self, line: bytes, result: Event | Bad) -> None:
        held = self._held
        if held is None:
            return
        proof = isinstance(result, Event) and not self._in_last_batch(result, held)
        if proof or held.size + len(line) >= layout.MAX_BATCH:
            self._release()
            self._settle(line, result, hold=True)
            return
        held.lines.append(line)
        held.size += len(line) + 1

    def _settle(self, line: bytes, result: Event | Bad, *, hold: bool) -> None:
        """Decide about a line; a bad one that may be torn is held instead."""
        if isinstance(result, Event):
            event, code, detail, bad = result, self._chains.find(result), "", False
        else:
            event, code, detail, bad = result.event, result.code, result.detail, True
        if hold and code in TEARABLE and self._hold(line, result, code):
            return
        length = len(line) + 1
        if event is None:
            if code is not None:
                self._damage(code, line=self._lines + 1, length=length, detail=detail)
            self._chains.add_unreadable()
        else:
            place = self._chains.find(event) if bad else code
            null = self._null_before(event, code)
            if code is not None and (code in PARDONABLE or null is not None):
                self._wait(event, code, place, detail, length=length, null=null)
            elif code is not None:
                self._damage(code, line=self._lines + 1, length=length, detail=detail)
            if type(event.body) in PARDONING and code != "duplicate_event":
                self._pardons.note(event, self._chains.sides())
            self._chains.add(event, place, doubtful=bad and code not in BODILESS)
        self._lines += 1
        self._offset += length
        whole = not bad or code in BODILESS
        if event is not None and whole and code != "duplicate_event":
            self._found.append(event)
            self._numbers.append(self._lines)
            self._events += 1

    def _null_before(self, event: Event, code: Code | None) -> Waiting | None:
        """The null body before an event that does not continue it: its header may be wrong."""
        broken = code in ("chain_gap", "chain_broken")
        null = self._null
        return null if broken and null and null.event_id == self._chains.tip(event) else None

    def _wait(
        self,
        event: Event,
        code: Code,
        place: Code | None,
        detail: str,
        *,
        length: int,
        null: Waiting | None,
    ) -> None:
        """Keep a failure until the end, with what else is wrong should it be pardoned."""
        first = last = self._waiting(event, code, detail, length=length)
        first.after = null
        if code in BODILESS:
            self._null = first
            if place is not None:
                first.then = last = self._waiting(event, place, "", length=length)
        if last.damage.code == "chain_gap":
            further = self._chains.find(event, loose=True)
            last.then = further and self._waiting(event, further, "", length=length)
        self._pardons.wait(first)
        if self._pardons.full:
            self._decide()

    def _waiting(self, event: Event, code: Code, detail: str, *, length: int) -> Waiting:
        damage = Damage(
            code=code,
            line=self._lines + 1,
            offset=self._offset,
            length=length,
            message=say(code, detail),
        )
        return waiting_for(event, damage, self._chains, blob=detail)

    def _decide(self) -> None:
        for damage in self._pardons.decide():
            self._report(damage)

    def _hold(self, line: bytes, result: Event | Bad, code: Code) -> bool:
        held = _Held(reason=code, lines=[line], size=len(line) + 1, batch=None)
        if isinstance(result, Event) and not self._in_last_batch(result, held):
            return False
        self._hash_to(self._offset)
        self._held = held
        return True

    def _in_last_batch(self, event: Event, held: _Held) -> bool:
        """Whether a sound line may be of the append that the held lines are of."""
        header = event.header
        key = (header.machine, header.incarnation)
        last = self._chains.last
        begun = last is not None and (last.header.machine, last.header.incarnation) == key
        if header.batch != self._chains.next_seq(key) and not (
            begun and last is not None and header.batch == last.header.batch
        ):
            return False
        batch = (key, header.batch)
        held.batch = held.batch or batch
        return held.batch == batch

    def _release(self) -> None:
        """Take the held lines for what they are: a later batch proves that they were durable."""
        held, self._held = self._held, None
        if held is None:
            return
        for line in held.lines:
            self._digest.update(line)
            self._digest.update(b"\n")
            self._hashed += len(line) + 1
            self._settle(line, self._line_reader.read(line), hold=False)

    def _begin_to_skip(self) -> None:
        """Keep no more of a line that is longer than any append."""
        self._release()
        self._hash_to(self._offset)
        self._sound = self._digest.copy()
        self._digest.update(self._tail)
        self._skipped = len(self._tail)
        self._hashed += self._skipped
        self._tail = b""

    def _skip(self, chunk: bytes) -> bytes:
        """Drop the bytes of a line that is longer than any append."""
        end = chunk.find(b"\n") + 1 or len(chunk)
        self._digest.update(chunk[:end])
        self._hashed += end
        self._skipped += end
        if chunk[end - 1 : end] == b"\n":
            self._damage("line_too_long", line=self._lines + 1, length=self._skipped)
            self._chains.add_unreadable()
            self._lines += 1
            self._offset += self._skipped
            self._skipped = 0
            self._pass_marks()
        return chunk[end:]

    def _hash_to(self, offset: int) -> None:
        if offset > self._hashed:
            view = memoryview(self._data)
            self._digest.update(view[self._hashed - self._data_at : offset - self._data_at])
            self._hashed = offset

    def _pass_marks(self) -> None:
        """Compare with what is known up to here."""
        while self._marks and self._offset >= self._marks[0]:
            length = self._marks.pop(0)
            for mark in self._known:
                if mark.length == length:
                    self._check_mark(mark)

    def _check_mark(self, mark: Known) -> None:
        self._hash_to(self._offset)
        ends_here = self._offset == mark.length
        if self._chains.complete and not (ends_here and self._ends_with(mark)):
            self._wrong[mark] = "log_replaced"
        elif mark.sha256 is not None and not (
            ends_here and self._digest.hexdigest() == mark.sha256
        ):
            self._wrong[mark] = "log_altered"

    def _ends_with(self, mark: Known) -> bool:
        last = self._chains.last
        return (mark.last is None or (last is not None and mark.last == last.id)) and (
            mark.heads is None or mark.heads == self._chains.heads()
        )

    def _check_marks(self) -> None:
        """Report each disagreement with what is known once."""
        length = self._offset + len(self._tail) + self._skipped
        codes: list[Code] = []
        for mark in self._known:
            code = self._wrong.get(mark)
            if mark.length > length:
                code = "log_shorter"
            elif mark.length in self._marks and mark.sha256 is not None:
                # It ends inside a last line that has no end, which is reported already.
                code = "log_altered"
            if code is not None and code not in codes:
                codes.append(code)
                self._damage(code, line=0, length=mark.length, detail=f"{mark.length} bytes")

    def _find_torn(self, *, same_boot: bool) -> Torn | None:
        held = self._held
        length = len(self._tail) + (held.size if held else 0)
        reason: Code = held.reason if held else "line_unended"
        whole = held is None or not same_boot
        above = self._offset >= self._floor and not self._skipped
        if not (whole and above and 0 < length <= layout.MAX_BATCH):
            return None
        return Torn(line=self._lines + 1, offset=self._offset, length=length, reason=reason)

    def _damage(self, code: Code, *, line: int, length: int, detail: str = "") -> None:
        at, message = self._offset if line else 0, say(code, detail)
        self._report(Damage(code=code, line=line, offset=at, length=length, message=message))

    def _report(self, damage: Damage) -> None:
        self._found.append(damage)
        self._numbers.append(damage.line)
        self._damaged += 1
        if len(self._damages) < layout.MAX_DAMAGES:
            self._damages.append(damage)
        self._run_allowed = self._run_allowed and not stops_running(damage.code)
