"""A client of the gateway, which speaks its REST interface."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest


class GatewayClient:
    """One session of a gateway."""

    def __init__(self, address: str, version: str = "v2", **properties: str) -> None:
        self.address, self.version = address, version
        code, answer = self.request("POST", "/sessions", {"properties": properties})
        assert code == 200, answer
        self.session = f"/sessions/{answer['sessionHandle']}"

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request as Flink's clients do; return the status code and the answer."""
        url = path if path.startswith("http") else f"{self.address}/{self.version}{path}"
        data = json.dumps({} if body is None else body).encode()
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            return refused.code, json.load(refused)

    def submit(self, statement: str, **options: Any) -> str:
        """Submit a statement and return the path of its operation."""
        code, answer = self.request("POST", f"{self.session}/statements", {"statement": statement, **options})
        assert code == 200, answer
        return f"{self.session}/operations/{answer['operationHandle']}"

    def status(self, operation: str) -> str:
        return str(self.request("GET", f"{operation}/status")[1]["status"])

    def wait_for(self, operation: str, status: str) -> None:
        for _ in range(600):
            if self.status(operation) == status:
                return
            time.sleep(0.05)
        pytest.fail(f"the operation did not become {status}: it is {self.status(operation)}")

    def pages(self, operation: str, row_format: str = "JSON") -> Iterator[Any]:
        """Yield the pages of a result as clients follow them; the one after the last page that has a successor too."""
        query = "" if self.version == "v1" else f"?rowFormat={row_format}"
        path = f"{self.address}/{self.version}{operation}/result/0{query}"
        while True:
            code, page = self.request("GET", path)
            assert code == 200, page
            if page["resultType"] != "NOT_READY":
                yield page
            if page["resultType"] == "EOS":
                return
            path = self.address + page["nextResultUri"]

    def execute(self, statement: str, row_format: str = "JSON") -> list[list[Any]]:
        """Return the fields of all rows of a result."""
        pages = self.pages(self.submit(statement), row_format)
        return [row["fields"] for page in pages for row in page["results"]["data"]]

    def fail(self, statement: str) -> str:
        """Return the error of a statement."""
        operation = self.submit(statement)
        self.wait_for(operation, "ERROR")
        code, answer = self.request("GET", f"{operation}/result/0?rowFormat=JSON")
        assert code == 500
        return str(answer["errors"][-1])
