"""The web UI: its built files, which are part of the package.

Promises: only files of the UI are served; a page may load scripts and styles only from this server; files whose names
have a hash may be cached for ever, all others must be revalidated.
Does not know: what the UI shows; its sources are in the folder `ui` of the repository."""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import Response

from millstream.cluster.rest.errors import NotFound

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_MEDIA_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "md": "text/plain; charset=utf-8",
}
_REVALIDATE, _IMMUTABLE = "no-cache", "public, max-age=31536000, immutable"


def create_router() -> APIRouter:
    """Return the routes of the UI."""
    router = APIRouter(include_in_schema=False)
    folder = files("millstream") / "ui_files"
    pages = {path.name: path for path in folder.iterdir() if path.is_file()}
    assets = {path.name: path for path in (folder / "assets").iterdir()}

    @router.get("/")
    def get_page() -> Response:
        """Return the page."""
        return _answer("index.html", pages["index.html"].read_bytes(), _REVALIDATE)

    @router.get("/licenses.md")
    def get_licenses() -> Response:
        """Return the licenses of the packages that the built files contain."""
        return _answer("licenses.md", pages["licenses.md"].read_bytes(), _REVALIDATE)

    @router.get("/assets/{name}")
    def get_asset(name: str) -> Response:
        """Return a script, style or image of the page."""
        if name not in assets:
            msg = f"the UI has no file {name!r}"
            raise NotFound(msg, hint="reload the page: another version of it is installed")
        return _answer(name, assets[name].read_bytes(), _IMMUTABLE)

    return router


def is_ui_file(method: str, path: str) -> bool:
    """Return whether a request asks for a file of the UI."""
    return method == "GET" and (path in ("/", "/licenses.md") or path.startswith("/assets/"))


def _answer(name: str, content: bytes, caching: str) -> Response:
    media_type = _MEDIA_TYPES.get(name.rpartition(".")[2], "application/octet-stream")
    return Response(content, media_type=media_type, headers={**_HEADERS, "Cache-Control": caching})
