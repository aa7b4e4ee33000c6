"""The library's face, and the place where everything is put together.

    from sojourn import Agent, tool

`Agent` is a held capsule: send, run, events, context. `Machine` is this install: it finds, makes,
looks at and verifies capsules, and works its queue.
"""

from sojourn.agent.agent import Agent
from sojourn.agent.look import Look
from sojourn.agent.machine import Machine
from sojourn.agent.places import Place
from sojourn.agent.report import Accepted, Question, Report
from sojourn.drive.observe import Observer, Unwatched

__all__ = [
    "Accepted",
    "Agent",
    "Look",
    "Machine",
    "Observer",
    "Place",
    "Question",
    "Report",
    "Unwatched",
]
