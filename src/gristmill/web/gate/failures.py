"""Whatever goes wrong becomes one shape: problem+json for programs, a page for people; no answer shows our insides."""

from collections.abc import Mapping
from http import HTTPStatus
from secrets import token_hex
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.requests import Request
from fastapi.responses import JSONResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gristmill.db import explain_rejection
from gristmill.errors import GristmillError
from gristmill.serving import Problem, describe_problem, services_of
from gristmill.telemetry import log

NO_OBJECT = "model_attributes_type"  # pydantic's word for a body that is a list, a text or not read as JSON at all
NO_JSON = "json_invalid"  # FastAPI's word for a body that says it is JSON, and is not
MOST_FAULTS = 5  # wrong values of one request that are named
PROGRAMS = ("/api/", "/v1/", "/mcp", "/healthz", "/readyz", "/metrics", "/static/")
OPENAI = "/v1/"  # its clients look for an object `error`


class FailureShield:
    """Answers in place of what failed before, behind or within a route."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = False

        async def send_noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = has_begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        except Exception as error:  # noqa: BLE001 the last one who can answer
            problem = explain_failure(error, scope)
            if not has_begun:  # what has begun is cut off: the caller sees that it is not whole
                await answer_problem(Request(scope), problem)(scope, receive, send)


def explain_failure(error: Exception, scope: Scope) -> Problem:
    match error:
        case Problem():
            return error
        case GristmillError():
            return describe_problem(error)
        case RequestValidationError():
            return describe_faults(error)
        case HTTPException(__cause__=Problem() as refusal):  # of a body that was refused while FastAPI read it
            return refusal
        case HTTPException(__cause__=RecursionError()):
            return Problem(422, "The JSON of the body is nested too deep: put fewer lists and objects into each other.")
        case HTTPException(__cause__=UnicodeDecodeError()):
            return Problem(422, "The body is not UTF-8 text.")
        case HTTPException():
            return describe_http_error(error)
        case ClientDisconnect():  # nobody hears it, and it is no fault of ours
            return Problem(422, "The request was cut off before all of it had come: send it again.")
        case UnicodeEncodeError():
            return Problem(422, "A text holds half of a character (a lone surrogate): send it whole.")
        case _ if rejected := explain_rejection(error):
            return describe_problem(rejected)
        case _:
            return report_unexpected(error, scope)


def report_unexpected(error: Exception, scope: Scope) -> Problem:
    """A fault of ours: the log has it under an id, the caller gets the id alone."""
    id = token_hex(6)
    log.error("a request failed", id=id, method=scope.get("method"), path=scope.get("path"), exc_info=error)
    return Problem(500, f"Something unexpected went wrong; the log of the server has it under {id}.", id=id)


def describe_http_error(error: HTTPException) -> Problem:
    match error.status_code:
        case 400:  # FastAPI's answer to a body that is not what its header says
            return Problem(422, "The body of the request cannot be read: see its Content-Type.")
        case 404:
            sentence = "There is nothing here."
        case 405:
            sentence = "This cannot be done here: see the header Allow for what can."
        case _:
            sentence = str(error.detail) or HTTPStatus(error.status_code).phrase
    return Problem(error.status_code, sentence, headers=error.headers)


def describe_faults(error: RequestValidationError) -> Problem:
    """Which values are wrong and why, without repeating them: they may be secrets, or as long as a book."""
    if any(one["type"] == NO_OBJECT and one["loc"] == ("body",) for one in error.errors()):
        return Problem(422, "The body must be a JSON object, sent with the header Content-Type: application/json.")
    if broken := [one for one in error.errors() if one["type"] == NO_JSON]:
        return describe_broken_json(broken[0])
    faults = [{"at": ".".join(map(str, one["loc"])), "wrong": str(one["msg"])} for one in error.errors()[:MOST_FAULTS]]
    first = faults[0] if faults else {"at": "the request", "wrong": "it cannot be read"}
    return Problem(422, f"{first['at']} is wrong: {first['wrong']}.", faults=faults)


def describe_broken_json(fault: Mapping[str, Any]) -> Problem:
    """What the parser expected, and where: it counts from 0, people from 1."""
    place = int(fault["loc"][-1]) + 1
    wrong = str(fault["ctx"]["error"]).rstrip(": ").removesuffix(" at")
    return Problem(422, f"The body is not JSON: {wrong} at character {place}.")


def answer_problem(request: Request, problem: Problem) -> Response:
    if not is_for_people(request):
        body, kind = problem.body, "application/problem+json"
        if request.url.path.startswith(OPENAI):
            body["error"] = {"message": problem.detail, "type": body["title"], "code": problem.status}
        return JSONResponse(body, problem.status, headers=problem.headers, media_type=kind)
    if problem.status == 401:
        return send_to_sign_in(request)
    page = services_of(request).render(request, "problem.html", status=problem.status, problem=problem)
    page.headers.update(problem.headers)
    return page


def is_for_people(request: Request) -> bool:
    path = request.url.path
    return request.scope["type"] == "http" and not path.startswith(PROGRAMS) and path != "/api"


def send_to_sign_in(request: Request) -> Response:
    """To the sign-in page; a part of a page that is fetched anew sends its whole page there."""
    if request.headers.get("hx-request"):
        return Response(status_code=401, headers={"HX-Redirect": "/sign-in"})
    if request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        # a strict cookie is not sent with a link on a foreign page; our own page loads itself anew, with the cookie
        return services_of(request).render(request, "arriving.html")
    return RedirectResponse("/sign-in", 303)
