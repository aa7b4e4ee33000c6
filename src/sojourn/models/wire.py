"""What the client's exceptions mean: not sent, silent, broken off or not understood."""

import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import cast

from sojourn.errors import CallError
from sojourn.models.failures import Failures
from sojourn.models.limits import Limits
from sojourn.render.refusal import NOT_SENT


class Sending:
    """Listens to the client to know whether the whole request was given to the network."""

    def __init__(self) -> None:
        self.whole = False
        self._connect = False

    async def note(self, name: str, info: Mapping[str, object]) -> None:
        """Called at each step; a CONNECT to a proxy does not count."""
        if name.endswith("send_request_body.started"):
            self._connect = getattr(info.get("request"), "method", b"") == b"CONNECT"
        elif name.endswith("send_request_body.complete"):
            self.whole = not self._connect


def trouble(error: Exception, sending: Sending, failures: Failures, limits: Limits) -> CallError:
    """The failure that a client's exception stands for.

    Only what was sent whole may have happened: a server cannot answer half a request.
    """
    import httpx2

    if isinstance(error, httpx2.ProxyError):
        return _unreachable(
            failures, "the proxy refused", _hint(error, "HTTPS_PROXY and HTTP_PROXY")
        )
    if isinstance(error, httpx2.ConnectTimeout):
        return _unreachable(failures, f"no answer within {limits.connect_seconds:g} s", "")
    if isinstance(error, httpx2.ConnectError):
        return _not_connected(error, failures)
    if not sending.whole:
        return _unreachable(failures, "the connection broke while the request was sent", "")
    if isinstance(error, httpx2.TimeoutException):
        return failures.make(
            "timed_out", f"nothing came for {limits.idle_seconds:g} s", may_have_happened=True
        )
    # The client tells an end of the connection from wrong bytes by words alone.
    closed = "disconnected" in str(error) or "closed connection" in str(error)
    if isinstance(error, httpx2.NetworkError | OSError) or closed:
        return failures.make("stream_cut", may_have_happened=True)
    return failures.make("stream_malformed", "it broke the rules of HTTP", may_have_happened=True)


def _unreachable(failures: Failures, detail: str, hint: str, *, retry: bool = True) -> CallError:
    return failures.make("unreachable", detail, state=NOT_SENT, hint=hint, retry=retry)


def _not_connected(error: Exception, failures: Failures) -> CallError:
    """Why there is no connection; a certificate or a name that is wrong stays wrong."""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            hint = f"{cause.strerror or cause}. SSL_CERT_FILE names further certificates to trust."
            return _unreachable(failures, "its certificate is not trusted", hint, retry=False)
        if isinstance(cause, ssl.SSLError):
            return _unreachable(failures, "no TLS with it", _hint(cause, ""), retry=False)
        if isinstance(cause, socket.gaierror):
            again = cause.errno == socket.EAI_AGAIN
            return _unreachable(failures, "no such name in DNS", "", retry=again)
    for cause in _causes(error):
        if isinstance(cause, ConnectionRefusedError):
            return _unreachable(failures, "nothing listens there", "")
        if isinstance(cause, OSError) and cause.errno:
            return _unreachable(failures, os.strerror(cause.errno), "")
    return _unreachable(failures, "no connection", _hint(error, ""))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, what caused it, and the members of groups among them."""
    found: BaseException | None = error
    while found is not None:
        yield found
        if isinstance(found, BaseExceptionGroup):
            for member in cast("BaseExceptionGroup[BaseException]", found).exceptions:
                yield from _causes(member)
        found = found.__cause__ or found.__context__


def _hint(error: Exception, names: str) -> str:
    return f"{error}.{f' Look at {names}.' if names else ''}"
