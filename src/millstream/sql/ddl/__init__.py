"""Execution of DDL: CREATE, ALTER, DROP, SHOW, DESCRIBE, USE."""

from millstream.sql.ddl.executor import DdlExecutor
from millstream.sql.ddl.results import OK, StatementResult, make_string_result

__all__ = ["OK", "DdlExecutor", "StatementResult", "make_string_result"]
