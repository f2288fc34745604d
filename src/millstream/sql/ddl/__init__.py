"""Statements about catalogs."""

from millstream.sql.ddl.answers import OK, Answer, table_of
from millstream.sql.ddl.definitions import Definitions

__all__ = ["OK", "Answer", "Definitions", "table_of"]
