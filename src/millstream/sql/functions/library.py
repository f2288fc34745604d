"""All built-in functions, loaded."""

from millstream.sql.functions import arithmetic, collections, logic, strings, temporal
from millstream.sql.functions.registry import function_named

__all__ = ["arithmetic", "collections", "function_named", "logic", "strings", "temporal"]
