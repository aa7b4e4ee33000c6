"""Bodies of every kind, made from the types: a new kind is in the tests on the day it is added."""

from functools import partial
from typing import Any

from hypothesis import strategies as st
from msgspec import inspect

from sojourn.format.chains import FIRST_KINDS
from sojourn.format.event import KINDS, AnyBody
from sojourn.format.layout import MAX_INT

HEX = st.text("0123456789abcdef", min_size=64, max_size=64)
CLEAN = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ANY = st.text(max_size=12) | st.text(st.characters(categories=["Cs", "Ll"]), max_size=6)


def strategy(info: inspect.Type, texts: Any) -> Any:
    """Values of a type."""
    match info:
        case inspect.StrType(pattern=pattern):
            return HEX if pattern else texts
        case inspect.IntType(ge=least):
            return st.integers(least or 0, MAX_INT)
        case inspect.FloatType():
            return st.floats(0, MAX_INT, allow_nan=False)
        case inspect.BoolType():
            return st.booleans()
        case inspect.NoneType():
            return st.none()
        case inspect.LiteralType(values=values):
            return st.sampled_from(values)
        case inspect.UnionType(types=types):
            return st.one_of([strategy(item, texts) for item in types])
        case inspect.VarTupleType(item_type=item):
            return st.lists(strategy(item, texts), max_size=3).map(tuple)
        case inspect.DictType(key_type=key, value_type=item):
            return st.dictionaries(strategy(key, texts), strategy(item, texts), max_size=3)
        case inspect.StructType(cls=cls, fields=fields):
            kept = [f for f in fields if f.name not in ("salt", "mended", "heads")]
            given = {f.name: strategy(f.type, texts) for f in kept if f.required}
            given |= {f.name: st.just(()) for f in fields if f.name == "heads" and f.required}
            more = {f.name: strategy(f.type, texts) for f in kept if not f.required}
            made = partial(_made, cls)
            return st.fixed_dictionaries(given, optional=more).map(made)
        case _:
            raise ValueError(f"no strategy for {info}")


def bodies(*, surrogates: bool = False) -> "st.SearchStrategy[AnyBody]":
    """Bodies of every kind but those that only begin a chain."""
    texts = ANY if surrogates else CLEAN
    kinds = [body for kind, body in KINDS.items() if kind not in FIRST_KINDS]
    # By way of the kind: the strategies of all kinds at once are too long to be shown.
    return st.sampled_from(kinds).flatmap(lambda kind: strategy(inspect.type_info(kind), texts))


def _made(cls: type, fields: dict[str, Any]) -> Any:
    return cls(**fields)
