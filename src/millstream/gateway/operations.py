"""REST resources of statements, operations and results.

Promises: Flink's fields. A statement is always accepted; its error is the answer to the request for its result.
Does not know: sessions, see `session_resources`."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from fastapi import APIRouter, Body, Path
from fastapi.responses import JSONResponse
from typing_extensions import TypedDict

from millstream.gateway.context import GatewayContext
from millstream.gateway.errors import ERROR_ANSWER, describe
from millstream.gateway.logical_types import describe_type
from millstream.gateway.operation import OperationStatus
from millstream.gateway.result_pages import Page, ResultInfo
from millstream.gateway.row_format import RowFormat, create_formatter
from millstream.gateway.session_resources import SessionPath

OperationPath = Annotated[str, Path(pattern="^[0-9a-fA-F-]{36}$")]
TokenPath = Annotated[int, Path(ge=0)]


class ExecuteStatement(TypedDict):
    """The body of a statement. `executionTimeout` is in milliseconds, 0 for none; `executionConfig` has options of this
    statement."""

    statement: str
    executionTimeout: NotRequired[int | None]
    executionConfig: NotRequired[dict[str, str] | None]


class RefreshTable(TypedDict):
    """The body that refreshes a materialized table; schedules are the table's own."""

    staticPartitions: NotRequired[dict[str, str] | None]
    executionConfig: NotRequired[dict[str, str] | None]


def create_router(context: GatewayContext, version: str) -> APIRouter:
    """Return the routes of one version."""
    router = APIRouter(tags=[f"operations {version}"])
    sessions, clock = context.sessions, context.clock

    @router.post("/sessions/{session_handle}/statements", responses=ERROR_ANSWER)
    def execute_statement(session_handle: SessionPath, body: Annotated[ExecuteStatement, Body()]) -> dict[str, str]:
        """Submit a statement."""
        timeout = body.get("executionTimeout") or 0
        operation = sessions.get(session_handle).submit(
            body["statement"], timeout / 1000 if timeout > 0 else None, body.get("executionConfig")
        )
        return {"operationHandle": operation.handle}

    @router.post("/sessions/{session_handle}/materialized-tables/{identifier}/refresh", responses=ERROR_ANSWER)
    def refresh_materialized_table(
        session_handle: SessionPath, identifier: str, body: Annotated[RefreshTable | None, Body()] = None
    ) -> dict[str, str]:
        """Refresh a materialized table, or a partition of it, by a batch job."""
        request = body or RefreshTable()
        statement = _refresh_statement(identifier, request.get("staticPartitions") or {})
        operation = sessions.get(session_handle).submit(statement, settings=request.get("executionConfig"))
        return {"operationHandle": operation.handle}

    @router.get("/sessions/{session_handle}/operations/{operation_handle}/status")
    def get_status(session_handle: SessionPath, operation_handle: OperationPath) -> dict[str, str]:
        """Return the status of an operation."""
        return {"status": sessions.get(session_handle).operation(operation_handle).status(clock.precise()).value}

    @router.post("/sessions/{session_handle}/operations/{operation_handle}/cancel")
    def cancel_operation(session_handle: SessionPath, operation_handle: OperationPath) -> dict[str, str]:
        """Cancel an operation."""
        sessions.get(session_handle).operation(operation_handle).cancel()
        return {"status": OperationStatus.CANCELED.value}

    @router.delete("/sessions/{session_handle}/operations/{operation_handle}/close")
    def close_operation(session_handle: SessionPath, operation_handle: OperationPath) -> dict[str, str]:
        """Close an operation."""
        sessions.get(session_handle).close_operation(operation_handle)
        return {"status": OperationStatus.CLOSED.value}

    @router.get(
        "/sessions/{session_handle}/operations/{operation_handle}/result/{token}",
        response_model=None,
        responses=ERROR_ANSWER,
    )
    def fetch_results(
        session_handle: SessionPath,
        operation_handle: OperationPath,
        token: TokenPath,
        rowFormat: RowFormat = RowFormat.JSON,
    ) -> JSONResponse:
        """Return a page of a result."""
        operation = sessions.get(session_handle).operation(operation_handle)
        path = f"/{version}/sessions/{session_handle}/operations/{operation_handle}/result"
        query = "" if version == "v1" else f"?rowFormat={rowFormat.value}"
        try:
            fetched = operation.fetch(token, clock.precise())
            if fetched is None:
                return JSONResponse({"resultType": "NOT_READY", "nextResultUri": f"{path}/{token}{query}"})
            info, page = fetched
            answer = _describe_page(info, page, rowFormat)
        except Exception as problem:
            return JSONResponse(
                {"errors": ["Internal server error.", describe(problem, operation_handle)]}, status_code=500
            )
        if page.next_token is not None:
            answer["nextResultUri"] = f"{path}/{page.next_token}{query}"
        return JSONResponse(answer)

    return router


def _refresh_statement(identifier: str, partitions: dict[str, str]) -> str:
    """Return the statement for a table name as clients write it: with or without backticks."""
    names = identifier.strip("`").split("`.`") if "`" in identifier else identifier.split(".")
    escaped = {key: value.replace("'", "''") for key, value in partitions.items()}
    values = ", ".join(f"{_quote(key)} = '{value}'" for key, value in escaped.items())
    partition = f" PARTITION ({values})" if values else ""
    return f"ALTER MATERIALIZED TABLE {'.'.join(map(_quote, names))} REFRESH{partition}"


def _quote(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _describe_page(info: ResultInfo, page: Page, row_format: RowFormat) -> dict[str, Any]:
    format_row = create_formatter(row_format, info.schema.types, info.zone)
    columns = [
        {"name": name, "logicalType": describe_type(data_type), "comment": None}
        for name, data_type in zip(info.schema.names, info.schema.types, strict=True)
    ]
    data = [{"kind": row.get_row_kind().name, "fields": format_row(row)} for row in page.rows]
    answer: dict[str, Any] = {
        "resultType": "EOS" if page.next_token is None else "PAYLOAD",
        "isQueryResult": info.is_query,
        "resultKind": info.kind,
        "results": {"columns": columns, "rowFormat": row_format.value, "data": data},
    }
    return answer if info.job_id is None else answer | {"jobID": info.job_id}
