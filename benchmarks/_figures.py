"""What the samples of the step benchmark add up to: medians, ratios, growth laws, rows."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from _contend import CONTENT_BYTES, Rendering, Sample
from _report import Row

LIMIT = "raw"
OURS = "sojourn"
EVENTS_A_STEP = 4
FRAME_BYTES = 450
"""What one event may add to its content: header, salt and wrapper."""
ALLOWED_BYTES = CONTENT_BYTES + EVENTS_A_STEP * FRAME_BYTES
"""Of a step where the subject cannot be asked how many bytes it writes."""

GOAL_STEP = 1.3
GOAL_SYNCS = 2.0
GOAL_GROWTH = 1.05
GOAL_TAIL = 1.2


@dataclass(kw_only=True)
class Found:
    """All samples so far, by contender and number of steps, and what is missing and why."""

    samples: dict[tuple[str, int], dict[int, Sample]] = field(default_factory=dict)
    syncs: dict[str, dict[str, float]] = field(default_factory=dict)
    renderings: dict[int, Rendering] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)

    def at(self, name: str, size: int) -> dict[int, Sample]:
        """Return the samples by repetition, none if there are none."""
        return self.samples.get((name, size), {})

    def lost(self, name: str) -> bool:
        """Whether this contender failed or is not there."""
        return any(line.startswith(name + ":") for line in self.absent)

    def stopped(self, name: str, size: int) -> bool:
        """Whether this contender met a limit at this or a smaller number of steps."""
        return any(
            sample.capped
            for (other, steps), by_repetition in self.samples.items()
            for sample in by_repetition.values()
            if other == name and steps <= size
        )


def middle(by_repetition: dict[int, Sample], value: Callable[[Sample], float]) -> float:
    """Return the median over repetitions."""
    return statistics.median(value(sample) for sample in by_repetition.values())


def paired(
    ours: dict[int, Sample], theirs: dict[int, Sample], value: Callable[[Sample], float]
) -> float | None:
    """Return the median of the ratios within each repetition that both have."""
    both = [value(ours[key]) / value(theirs[key]) for key in ours if key in theirs]
    return statistics.median(both) if both else None


def exponent(points: list[tuple[float, float]]) -> float | None:
    """Return the slope of log(seconds) over log(steps): 1 is flat per step, 2 is quadratic."""
    if len({steps for steps, _ in points}) < 2:
        return None
    logs = [(math.log(steps), math.log(seconds)) for steps, seconds in points]
    return statistics.linear_regression([x for x, _ in logs], [y for _, y in logs]).slope


def cap_of(by_repetition: dict[int, Sample]) -> str:
    """Return what stopped the runs early, empty if nothing did."""
    for sample in by_repetition.values():
        if sample.capped:
            return f"stopped by its limit of {sample.capped} after {sample.steps:,} steps"
    return ""


def label_of(name: str, size: int, by_repetition: dict[int, Sample]) -> str:
    """Return the words that name a contender at a number of steps, its cap included."""
    cap = cap_of(by_repetition)
    return f"{name} {size} steps" + (f" ({cap})" if cap else "")


def size_rows(name: str, size: int, found: Found) -> list[Row]:
    """Return the rows of one contender at one number of steps."""
    ours, limit = found.at(name, size), found.at(LIMIT, size)
    if not ours:
        return []
    label = label_of(name, size, ours)
    against = None if name == LIMIT else LIMIT
    goal = GOAL_STEP if name == OURS else None
    rows: list[Row] = []
    figures: list[tuple[str, Callable[[Sample], float], float | None]] = [
        ("step median", lambda sample: sample.median_us / 1e3, goal),
        ("step mean", lambda sample: sample.mean_us / 1e3, None),
        ("step processor", lambda sample: sample.cpu_us / 1e3, None),
        ("load", lambda sample: sample.load_ms, None),
    ]
    for what, value, bound in figures:
        ratio = paired(ours, limit, value) if against else None
        rows.append(
            Row(
                row=f"{what} {label}",
                value=middle(ours, value),
                unit="ms",
                against=against,
                ratio=ratio,
                goal=bound,
            )
        )
    return rows + disk_rows(name, size, found)


def disk_rows(name: str, size: int, found: Found) -> list[Row]:
    """Return what lies on the disk, and what an event of the subject's log adds to its content."""
    ours, limit = found.at(name, size), found.at(LIMIT, size)
    label = label_of(name, size, ours)
    against = None if name == LIMIT else LIMIT
    rows = [
        Row(
            row=f"disk {label}",
            value=middle(ours, lambda sample: sample.disk_bytes / sample.steps),
            unit="bytes a step",
            against=against,
            ratio=paired(ours, limit, lambda sample: sample.disk_bytes / sample.steps)
            if against
            else None,
        )
    ]
    if middle(ours, lambda sample: sample.events):
        rows.append(
            Row(
                row=f"frame {label}",
                value=middle(ours, frame_bytes),
                unit="bytes an event beside its content",
                goal=FRAME_BYTES if name == OURS else None,
            )
        )
    return rows


def frame_bytes(sample: Sample) -> float:
    """Return the bytes of header, salt and wrapper in one event of the log."""
    return (sample.timeline_bytes - sample.content_bytes) / sample.events


def render_rows(found: Found) -> list[Row]:
    """Return the rows of rendering alone."""
    return [
        Row(
            row=f"render alone {size} steps",
            value=one.render_ms,
            unit="ms a request",
            against="the request's JSON written by json.dumps",
            ratio=one.render_ms / one.encode_ms,
        )
        for size, one in sorted(found.renderings.items())
    ]


def growth(name: str, sizes: Sequence[int], found: Found) -> float | None:
    """Return the exponent of total time over steps, medians of the repetitions."""
    points: list[tuple[float, float]] = []
    for size in sizes:
        ours = found.at(name, size)
        if ours:
            steps = middle(ours, lambda sample: sample.steps)
            points.append((steps, middle(ours, lambda sample: sample.total_s)))
    return exponent(points)


def growth_rows(name: str, sizes: Sequence[int], found: Found) -> list[Row]:
    """Return the growth law of one contender: the exponent, and the last tenth to the first."""
    rows: list[Row] = []
    slope, limit = growth(name, sizes, found), growth(LIMIT, sizes, found)
    if slope is not None:
        rows.append(
            Row(
                row=f"growth {name}",
                value=slope,
                unit="exponent",
                against=LIMIT if limit and name != LIMIT else None,
                ratio=slope / limit if limit and name != LIMIT else None,
                goal=GOAL_GROWTH if name == OURS else None,
            )
        )
    longest = next((size for size in reversed(sizes) if found.at(name, size)), None)
    if longest is not None:
        ours = found.at(name, longest)
        rows.append(
            Row(
                row=f"last tenth {label_of(name, longest, ours)}",
                value=middle(ours, lambda sample: sample.last_tenth_us / 1e3),
                unit="ms",
                against="first tenth",
                ratio=middle(ours, lambda sample: sample.last_tenth_us / sample.first_tenth_us),
                goal=GOAL_TAIL if name == OURS else None,
            )
        )
    return rows


def sync_rows(name: str, found: Found) -> list[Row]:
    """Return the row of one contender's syncs."""
    if name not in found.syncs:
        return []
    ours, limit = sum(found.syncs[name].values()), sum(found.syncs.get(LIMIT, {}).values())
    return [
        Row(
            row=f"syncs {name}",
            value=ours,
            unit="a step",
            against=LIMIT if limit else None,
            ratio=ours / limit if limit else None,
            goal=GOAL_SYNCS if name == OURS else None,
            exact=True,
        )
    ]
