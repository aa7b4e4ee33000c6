"""Every sentence that rendering itself says to a model, in one place.

They are part of the request and so of its stable prefix: changing one makes every provider's
cache of running conversations useless, and changes the vectors.
"""

from typing import Final

NOTES_HEAD: Final = "# Working memory\n\nYour own notes, word for word:"
NOTICE: Final = "[sojourn] {text}"
BEGIN: Final = "[sojourn] The conversation begins with your own message."
GO_ON: Final = "[sojourn] Please go on."
TAKEN: Final = "Understood."
EMPTY_MESSAGE: Final = "(empty message)"
NO_OUTPUT: Final = "(no output)"
MEDIA_BELOW: Final = "(see what follows the results)"
MEDIA_ABOVE: Final = "[sojourn] Media from the result of {tool} ({id}):"

NOT_RUN: Final = "This call was not run: it never began."
NOT_RUN_BROKEN: Final = (
    "This call was not run: its arguments were not a JSON object. Call again with valid arguments."
)
UNKNOWN: Final = (
    "The outcome of this call is unknown. It began and was cut off, so it may have happened, "
    "wholly or in part. Do not take for granted that it did, nor that it did not."
)
VERIFY_WITH: Final = "To find out, use: {tools}."
KNOWN: Final = "What is known: {message}"
OUTPUT_SO_FAR: Final = "What it had put out:"
FAILED: Final = "Error: {message}"
FAILED_CODE: Final = "Error ({code}): {message}"
FAILED_BARE: Final = "Error: the call failed."

SERVED: Final = "[the provider's own tool: {summary}]"
LEFT_OUT: Final = "[{what} left out: {why}]"
TOO_MANY: Final = "too many or too large for one request, and newer ones stand"
NO_BYTES: Final = "it has no bytes"
WRONG_BYTES: Final = "its bytes are not of a type that can be sent"
NOT_TAKEN: Final = "this model does not take it"
TOO_LARGE: Final = "it is too large"
NOT_HERE: Final = "it lies with another provider"
BY_MODEL: Final = "made by the model"

STUB_TOOL: Final = "Was used earlier; not available now."
UNNAMED_TOOL: Final = "unnamed"
INVALID_ARGUMENTS: Final = "_invalid_arguments"
