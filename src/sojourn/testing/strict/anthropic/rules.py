"""What differs among models of the Messages API, and the limits, in one place."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class AnthropicRules:
    """Knobs of the checker; the defaults are those of a current model, on the strict side."""

    prefill: bool = False
    """Whether the model continues a final assistant message (models before Opus/Sonnet 4.6)."""
    system_messages: bool = False
    """Whether `system` messages may stand among the others."""
    text_after_calls: bool = True
    """Whether text may follow the last tool_use; reports of this contradict each other."""
    refuse_white_space: bool = True
    """Whether a text of white space alone counts as empty."""
    check_signatures: bool = True
    """Whether thinking blocks must carry what `signatures.sign` issued for their model."""
    thinking_start: Literal["message", "loop"] = "message"
    """Under budget thinking, what must start with it while a tool loop is open: the last
    assistant message, or the first one of that loop."""
    max_id: int = 64
    """Characters of a call id; no error text names the limit, so this is the cautious one."""
    max_name: int = 64
    """Characters of a tool's name; some newer models take 128."""
    max_messages: int = 100_000
    max_bytes: int = 32 * 1024 * 1024
    max_images: int = 100
    max_image_bytes: int = 5 * 1024 * 1024
    """Of one image, counted on its base64 text."""
    max_pixels: int = 8000
    """Of one side of an image."""
    many_images: int = 20
    """Above this number of images the next limit holds instead."""
    max_pixels_of_many: int = 2000
    max_cache_marks: int = 4
