"""TLS 1.3 between machines whose certificates nobody vouches for but their people."""

import ssl
from base64 import b64decode
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256

from sojourn.peers.book import Known
from sojourn.ports_link import Certificate


def client_context(own: Certificate | None) -> ssl.SSLContext:
    """For going to another machine, with this one's certificate unless it is None.

    What the other side shows is compared with its pin after the handshake, before a byte is sent.
    """
    context = _context(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if own is not None:
        context.load_cert_chain(own.path)
    return context


def server_context(own: Certificate) -> ssl.SSLContext:
    """For others to come: a certificate that is shown must be one that was admitted.

    Who shows none can ask to be paired, and nothing else.
    """
    context = _context(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_cert_chain(own.path)
    return context


def admit(context: ssl.SSLContext, known: Iterable[Known], admitted: set[str]) -> None:
    """Let certificates in that were not yet. One that was dropped is refused above TLS."""
    for one in known:
        if one.certificate and one.pin not in admitted:
            with suppress(ssl.SSLError):
                context.load_verify_locations(cadata=b64decode(one.certificate))
            admitted.add(one.pin)


def shown(tls: ssl.SSLObject | None) -> tuple[bytes, str]:
    """The other side's certificate and its sha256; empty when it shows none."""
    der = None if tls is None else tls.getpeercert(binary_form=True)
    return (der, sha256(der).hexdigest()) if der else (b"", "")


def _context(side: int) -> ssl.SSLContext:
    context = ssl.SSLContext(side)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.options |= ssl.OP_NO_TICKET
    return context
