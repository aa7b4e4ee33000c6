"""The files of `environment/` as they are now (docs/format.md#environment)."""

from collections.abc import Mapping

from sojourn.errors import FormatError
from sojourn.format import environment, layout
from sojourn.format.environment_spec import Environment
from sojourn.ports import Store


def environment_files(store: Store) -> Mapping[str, bytes]:
    """Every file beside the spec and the spec itself, by its path in the capsule."""
    names = [name for name in store.file_names() if name.startswith(f"{layout.ENVIRONMENT}/")]
    return {name: store.read_file(name) or b"" for name in names}


def read_environment(files: Mapping[str, bytes]) -> Environment:
    """What the spec asks for, with every file that it names in its place.

    Raises: FormatError with file and line when the spec is not one.
    """
    spec = files.get(layout.SPEC, b"")
    try:
        wanted = environment.load(spec)
        environment.check_locks(wanted, files, spec=spec)
    except FormatError as error:
        raise FormatError(
            error.message,
            code=error.code,
            state="Nothing was recorded or run; the file is as it was left.",
            hint=f"Mend line {error.line} of {layout.SPEC} in the capsule's folder.",
            file=error.file,
            line=error.line,
        ) from None
    return wanted
