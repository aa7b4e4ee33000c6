"""The ASGI app of one start of the daemon."""

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sojourn.daemon.gate import JSON, Gate, target_of
from sojourn.daemon.house import House
from sojourn.daemon.openapi import shipped
from sojourn.daemon.paths import ENDPOINTS
from sojourn.peers.shapes import Fault, Refusal
from sojourn.peers.signing import answer_headers, digest, read_asked


def app_of(house: House) -> Starlette:
    """All endpoints, and the document that describes them."""

    async def nothing_here(request: Request, failure: Exception) -> Response:
        status = failure.status_code if isinstance(failure, HTTPException) else 500
        words = f"there is no {request.method} {target_of(request)} here"
        refusal = Refusal(error=Fault(code="no_such_path", message=words))
        data = msgspec.json.encode(refusal)
        headers = answer_headers(
            read_asked(request.method, target_of(request), request.headers),
            status=status,
            boot=house.boot,
            body=digest(data),
            identity=house.identity,
        )
        return Response(data, status_code=status, headers=headers, media_type=JSON)

    async def document(_request: Request) -> Response:
        return Response(shipped(), media_type=JSON)

    routes = [
        Route(endpoint.path, Gate(house, endpoint).answer, methods=[endpoint.method])
        for endpoint in ENDPOINTS
    ]
    routes.append(Route("/v1/openapi.json", document, methods=["GET"]))
    return Starlette(routes=routes, exception_handlers={404: nothing_here, 405: nothing_here})
