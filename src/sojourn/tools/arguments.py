"""The arguments of a tool: from a function's type hints to a JSON Schema and a strict reader."""

import copy
import inspect
import typing
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

import msgspec

from sojourn.errors import UsageError
from sojourn.ports import ToolContext


class BadArguments(Exception):
    """The arguments are not what the schema says; the message names the one to mend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """What a function takes: `schema` is JSON text, `context` names its ToolContext parameter."""

    schema: str
    names: tuple[str, ...]
    struct: type[msgspec.Struct]
    context: str | None

    def read(self, args: Mapping[str, object], context: ToolContext) -> dict[str, object]:
        """The keyword arguments for the function, converted without any guessing.

        Raises: BadArguments.
        """
        try:
            read = msgspec.convert(dict(args), type=self.struct, strict=True)
        except msgspec.ValidationError as error:
            raise BadArguments(self._explained(str(error))) from error
        given: dict[str, object] = {name: getattr(read, name) for name in self.names}
        if self.context is not None:
            given[self.context] = context
        return given

    def _explained(self, words: str) -> str:
        if " - at `" not in words:
            words = words.replace("Object missing required field", "missing argument")
            words = words.replace("Object contains unknown field", "unknown argument")
        words = words.replace(" - at `$.", " - at argument `").replace(" - at `$`", "")
        known = ", ".join(self.names) or "none"
        return f"{words}. Nothing was done. The arguments of this tool are: {known}."


def arguments_of(function: Callable[..., object], name: str) -> Arguments:
    """Read a function's signature.

    Raises: UsageError `tool_signature` for what cannot be asked of a model.
    """
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters.values()
    except (NameError, TypeError, ValueError) as error:
        raise _unfit(name, f"its type hints cannot be read: {error}") from error
    fields: list[tuple[str, object, object]] = []
    context: str | None = None
    for parameter in parameters:
        hint = hints.get(parameter.name)
        if hint is ToolContext:
            context = parameter.name
        else:
            fields.append(_field(name, parameter, hint))
    try:
        struct = msgspec.defstruct(
            name, fields, kw_only=True, forbid_unknown_fields=True, frozen=True
        )
        schema = _schema(struct)
    except (TypeError, ValueError) as error:
        raise _unfit(name, str(error)) from error
    names = tuple(field[0] for field in fields)
    return Arguments(schema=schema, names=names, struct=struct, context=context)


def _field(name: str, parameter: inspect.Parameter, hint: object) -> tuple[str, object, object]:
    if parameter.kind not in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD):
        raise _unfit(name, f"parameter {parameter.name!r} cannot be given by name")
    if hint is None:
        raise _unfit(name, f"parameter {parameter.name!r} has no type hint")
    default: object = parameter.default
    if default is parameter.empty:
        return parameter.name, hint, msgspec.NODEFAULT
    if not isinstance(default, Hashable):
        # One list must not be shared by all calls.
        made = msgspec.field(default_factory=lambda: copy.deepcopy(default))
        return parameter.name, hint, made
    return parameter.name, hint, default


def _schema(struct: type[msgspec.Struct]) -> str:
    """The schema with its outermost object in place, as every provider wants it."""
    (outer,), parts = msgspec.json.schema_components((struct,), ref_template="#/$defs/{name}")
    schema = parts.pop(str(outer["$ref"]).removeprefix("#/$defs/"))
    schema.pop("title", None)
    # Some providers refuse an object without the two.
    schema = {"required": list[str](), **schema, "additionalProperties": False}
    if parts:
        schema["$defs"] = parts
    return msgspec.json.encode(schema, order="sorted").decode()


def _unfit(name: str, why: str) -> UsageError:
    return UsageError(
        f"tool {name!r}: {why}",
        code="tool_signature",
        hint="Give every parameter a type hint that JSON has, and a default where it may be left.",
    )
