"""Which object each command prints with --json; the schemas of cli/schemas/ are made from it."""

from typing import Final

from sojourn.cli.shapes import (
    CompletionAnswer,
    ContextAnswer,
    DemoAnswer,
    DoctorAnswer,
    InitAnswer,
    LogLine,
    PsAnswer,
    RunLine,
    SearchAnswer,
    SendAnswer,
    ShowAnswer,
    StatusAnswer,
    VersionAnswer,
    WorkLine,
)
from sojourn.cli.shapes_archive import ExportAnswer, ImportAnswer, SignAnswer, VerifyAnswer
from sojourn.cli.shapes_carry import AdoptAnswer, ClaimAnswer, ExplainAnswer, ForkAnswer
from sojourn.cli.shapes_link import (
    PairAnswer,
    RemoteAnswer,
    RemoteList,
    RemoteTest,
    ServeAnswer,
)
from sojourn.cli.shapes_memory import (
    MemoryDiffAnswer,
    MemoryEditAnswer,
    MemoryLogAnswer,
    MemoryShowAnswer,
)
from sojourn.cli.shapes_merge import DiffAnswer, GraphAnswer, MergeAnswer
from sojourn.cli.shapes_move import DrainLine, MoveAnswer, MoveStatusAnswer
from sojourn.cli.shapes_snapshot import (
    SnapshotDiff,
    SnapshotList,
    SnapshotRestored,
    SnapshotTaken,
)
from sojourn.cli.shapes_trim import GcAnswer, RedactAnswer, RepairAnswer, StateAnswer
from sojourn.cli.shapes_trust import ScanAnswer

ANSWERS: Final[dict[str, object]] = {
    "adopt": AdoptAnswer,
    "claim": ClaimAnswer,
    "completion": CompletionAnswer,
    "context": ContextAnswer,
    "demo": DemoAnswer,
    "diff": DiffAnswer,
    "doctor": DoctorAnswer,
    "explain": ExplainAnswer,
    "fork": ForkAnswer,
    "export": ExportAnswer,
    "import": ImportAnswer,
    "graph": GraphAnswer,
    "gc": GcAnswer,
    "init": InitAnswer,
    "log": LogLine,
    "memory diff": MemoryDiffAnswer,
    "memory edit": MemoryEditAnswer,
    "memory log": MemoryLogAnswer,
    "memory show": MemoryShowAnswer,
    "merge": MergeAnswer,
    "pair": PairAnswer,
    "drain": DrainLine,
    "move": MoveAnswer,
    "move abort": MoveStatusAnswer,
    "move resume": MoveStatusAnswer,
    "move status": MoveStatusAnswer,
    "ps": PsAnswer,
    "redact": RedactAnswer,
    "remote add": RemoteAnswer,
    "remote list": RemoteList,
    "remote rm": RemoteAnswer,
    "remote test": RemoteTest,
    "repair": RepairAnswer,
    "resume": RunLine,
    "run": RunLine,
    "search": SearchAnswer,
    "scan": ScanAnswer,
    "send": SendAnswer,
    "serve": ServeAnswer,
    "show": ShowAnswer,
    "snapshot diff": SnapshotDiff,
    "snapshot list": SnapshotList,
    "snapshot restore": SnapshotRestored,
    "snapshot take": SnapshotTaken,
    "sign": SignAnswer,
    "state": StateAnswer,
    "status": StatusAnswer,
    "verify": VerifyAnswer,
    "version": VersionAnswer,
    "work": WorkLine,
}
"""What each command prints with --json: one object, or one a line."""
