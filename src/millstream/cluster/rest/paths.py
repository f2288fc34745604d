"""Types of path parameters that several resources share.

Promises: an id is 32 hexadecimal digits; any other text is refused with status 400.
Does not know: what the ids name."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path

_HEX_ID = Path(pattern="^[0-9a-fA-F]{32}$")

JobPath = Annotated[str, _HEX_ID]
VertexPath = Annotated[str, _HEX_ID]
TriggerPath = Annotated[str, _HEX_ID]
ApplicationPath = Annotated[str, _HEX_ID]
