"""Cache marks in the Messages API: how many, and in what order of their time to live."""

from collections.abc import Iterator, Sequence
from typing import Final

from sojourn.testing.strict.anthropic.blocks import blocks_of
from sojourn.testing.strict.anthropic.rules import AnthropicRules
from sojourn.testing.strict.refusal import Path, Refused, Rule
from sojourn.testing.strict.shape import Shape, check_shape, is_array, is_object, one_of

_MARK: Final = Shape({"type": one_of("ephemeral")}, {"ttl": one_of("5m", "1h")})


def check_cache(
    payload: dict[str, object], messages: Sequence[dict[str, object]], rules: AnthropicRules
) -> None:
    """At most four marks, a longer one never after a shorter one.

    Order of a request: tools, system, messages; the automatic mark at the top comes last.

    Raises: Refused with `cache_limit`, `cache_order` or a rule of shape.
    """
    count = 0
    short_seen = False
    for holder, path in _holders(payload, messages):
        mark = holder.get("cache_control")
        if mark is None:
            continue
        place = (*path, "cache_control")
        checked = check_shape(mark, place, _MARK)
        count += 1
        long = checked.get("ttl") == "1h"
        if long and short_seen:
            words = (
                "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control"
                " block. Note that blocks are processed in the following order: `tools`,"
                " `system`, `messages`."
            )
            raise Refused(Rule.CACHE_ORDER, words, path=(*place, "ttl"))
        short_seen = short_seen or not long
    if count > rules.max_cache_marks:
        words = (
            f"A maximum of {rules.max_cache_marks} blocks with cache_control may be provided."
            f" Found {count}."
        )
        raise Refused(Rule.CACHE_LIMIT, words)


def _holders(
    payload: dict[str, object], messages: Sequence[dict[str, object]]
) -> Iterator[tuple[dict[str, object], Path]]:
    tools = payload.get("tools")
    for index, tool in enumerate(tools if is_array(tools) else []):
        if is_object(tool):
            yield tool, ("tools", index)
    for index, block in enumerate(blocks_of(payload.get("system"))):
        yield block, ("system", index)
    for number, message in enumerate(messages):
        for index, block in enumerate(blocks_of(message["content"])):
            path: Path = ("messages", number, "content", index)
            inner = blocks_of(block.get("content")) if block["type"] == "tool_result" else []
            for place, part in enumerate(inner):
                yield part, (*path, "content", place)
            yield block, path
    yield payload, ()
