"""The table of commands: where each lives, and what it is for in one line.

A command's module is imported when the command is named, so `sojourn --help` imports none.
"""

from typing import Final, NamedTuple


class Listed(NamedTuple):
    """One command: the place of its `click.Command`, one line about it, its group in the help."""

    place: str
    summary: str
    group: str


COMMANDS: Final[dict[str, Listed]] = {
    "demo": Listed(
        "sojourn.cli.demo:command",
        "See an agent killed in the middle of a call, and go on.",
        "Start",
    ),
    "init": Listed("sojourn.cli.init:command", "Make a capsule.", "Start"),
    "doctor": Listed(
        "sojourn.cli.doctor:command",
        "Check this machine, or a capsule, and say what to do.",
        "Start",
    ),
    "run": Listed("sojourn.cli.run:command", "Send a message and take the turn here.", "Run"),
    "send": Listed(
        "sojourn.cli.send:command", "Leave a message; whoever runs the agent reads it.", "Run"
    ),
    "resume": Listed("sojourn.cli.resume:command", "Go on with an open turn.", "Run"),
    "work": Listed("sojourn.cli.work:command", "Take the turns that wait on this machine.", "Run"),
    "fork": Listed(
        "sojourn.cli.fork:command", "Go on from an event, as a capsule of its own.", "Carry"
    ),
    "claim": Listed(
        "sojourn.cli.claim:command", "Take over a capsule that another machine held.", "Carry"
    ),
    "adopt": Listed(
        "sojourn.cli.adopt:command", "Go on after a lost, restored or copied state folder.", "Carry"
    ),
    "merge": Listed("sojourn.cli.merge:command", "Take in what another copy has.", "Carry"),
    "serve": Listed("sojourn.cli.serve:command", "Let other machines reach this one.", "Machines"),
    "pair": Listed(
        "sojourn.cli.pair:command", "Introduce this machine and another one.", "Machines"
    ),
    "remote add": Listed("sojourn.cli.remote:add", "Give another machine a name.", "Machines"),
    "remote list": Listed("sojourn.cli.remote:listing", "List the known machines.", "Machines"),
    "remote rm": Listed("sojourn.cli.remote:remove", "Forget a machine.", "Machines"),
    "remote test": Listed("sojourn.cli.remote:test", "Reach a machine, and time it.", "Machines"),
    "move": Listed(
        "sojourn.cli.move:command", "Move an agent, running or not, to another machine.", "Carry"
    ),
    "move status": Listed(
        "sojourn.cli.move_status:status", "Show moves that are not over.", "Carry"
    ),
    "move resume": Listed(
        "sojourn.cli.move_status:resume", "Ask again about moves that are not over.", "Carry"
    ),
    "move abort": Listed(
        "sojourn.cli.move_status:abort", "Cancel a move that can still be cancelled.", "Carry"
    ),
    "drain": Listed("sojourn.cli.drain:command", "Move every agent off this machine.", "Carry"),
    "status": Listed("sojourn.cli.status:command", "Show how one capsule stands.", "Look"),
    "ps": Listed("sojourn.cli.ps:command", "List the capsules of this machine.", "Look"),
    "log": Listed("sojourn.cli.log:command", "Show what happened, event by event.", "Look"),
    "show": Listed("sojourn.cli.show:command", "Show one event in full.", "Look"),
    "explain": Listed(
        "sojourn.cli.explain:command",
        "Say who holds it, and why it would not run.",
        "Look",
    ),
    "search": Listed(
        "sojourn.cli.search:command", "Find what was said and done, by meaning.", "Look"
    ),
    "diff": Listed(
        "sojourn.cli.diff:command", "Show what two copies have that the other lacks.", "Look"
    ),
    "graph": Listed("sojourn.cli.graph:command", "Show who went on from whom.", "Look"),
    "context": Listed("sojourn.cli.context:command", "Print what a model would get now.", "Look"),
    "state": Listed("sojourn.cli.state:command", "Show how it all stood at an event.", "Look"),
    "memory show": Listed(
        "sojourn.cli.memory:show", "Print the notes; --blame says who wrote each line.", "Look"
    ),
    "memory log": Listed("sojourn.cli.memory:log", "List the edits of the notes.", "Look"),
    "memory diff": Listed("sojourn.cli.memory:diff", "Compare the notes at two events.", "Look"),
    "memory edit": Listed("sojourn.cli.memory:edit", "Edit the notes.", "Run"),
    "snapshot take": Listed(
        "sojourn.cli.snapshot:take", "Snapshot the workspace as it is now.", "Run"
    ),
    "snapshot list": Listed("sojourn.cli.snapshot:listing", "List the snapshots.", "Look"),
    "snapshot diff": Listed(
        "sojourn.cli.snapshot:diff", "Compare two snapshots, path by path.", "Look"
    ),
    "snapshot restore": Listed(
        "sojourn.cli.snapshot:restore", "Put an earlier state of the workspace back.", "Run"
    ),
    "export": Listed("sojourn.cli.export:command", "Write a capsule to one file.", "Carry"),
    "import": Listed("sojourn.cli.importing:command", "Take a capsule in from a file.", "Carry"),
    "sign": Listed("sojourn.cli.sign:command", "Sign an archive with an SSH key.", "Carry"),
    "verify": Listed(
        "sojourn.cli.verify:command", "Check every byte of a capsule or archive.", "Trust"
    ),
    "scan": Listed("sojourn.cli.scan:command", "Find likely secrets in a capsule.", "Trust"),
    "redact": Listed("sojourn.cli.redact:command", "Take an event's text away for good.", "Trust"),
    "repair": Listed("sojourn.cli.repair:command", "Set damaged bytes aside, and go on.", "Trust"),
    "gc": Listed("sojourn.cli.gc:command", "Remove blobs that nothing names.", "Tidy"),
    "completion": Listed(
        "sojourn.cli.completion:command", "Print completion for your shell.", "Tidy"
    ),
    "version": Listed("sojourn.cli.version:command", "Print the version.", "Tidy"),
}
"""Every command by its name, in the order of the help; one of two words lies in a group."""

GROUPS: Final[dict[str, str]] = {
    "memory": "Read and edit the agent's notes, and see how they came about.",
    "remote": "Name other machines, and see which are known here.",
    "snapshot": "Keep the workspace as it is, and put an earlier state back.",
}
"""What each group of commands is for."""
