"""Requests that Schemathesis derives from an OpenAPI document, valid and invalid ones, sent to an ASGI application."""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import hypothesis
import schemathesis
from fastapi import FastAPI
from hypothesis import strategies as st
from schemathesis.checks import CHECKS
from schemathesis.schemas import APIOperation

#: How many requests a test sends at least; without it, a few for each operation.
REQUESTS = int(os.environ.get("MILLSTREAM_OPENAPI_REQUESTS", "0"))
_FEW = 2

PathParameters = Callable[[], Mapping[str, str]]
Change = Callable[[schemathesis.Case], None]


@dataclass
class Requests:
    """What was sent to an application, and how often each status was answered."""

    sent: list[schemathesis.Case] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)


def send_requests(
    application: FastAPI,
    path_parameters: PathParameters,
    *,
    headers: Mapping[str, str],
    change: Change = lambda case: None,
    only: str = "",
) -> Requests:
    """Send requests to the operations of an application.

    A status of 500 or more that the document does not declare is a failure, and so is an answer that does not have the
    declared form.

    Args:
        application: The application.
        path_parameters: Returns parameters that exist at this moment; half of the requests have these.
        headers: Headers of all requests.
        change: Changes a request before it is sent.
        only: A regular expression that the paths of operations match.

    """
    schema = schemathesis.openapi.from_asgi("/openapi.json", application, headers=dict(headers))
    operations = [result.ok() for result in schema.get_all_operations()]
    operations = [operation for operation in operations if re.match(only, operation.path)]
    assert operations
    requests = Requests()
    for seed in itertools.count():  # an operation without parameters has few requests
        for operation in operations:
            count = max(_FEW, (REQUESTS - len(requests.sent)) // len(operations))
            _send(hypothesis.seed(seed), operation, count, path_parameters, dict(headers), change, requests)
        if len(requests.sent) >= REQUESTS:
            return requests
    raise AssertionError


def send_again(requests: Requests, headers: Mapping[str, str]) -> Counter[int]:
    """Send the same requests with other headers, and return how often each status was answered."""
    return Counter(case.call(headers=dict(headers)).status_code for case in requests.sent)


def _send(
    seed: Callable[[Callable[..., None]], Callable[..., None]],
    operation: APIOperation,
    count: int,
    path_parameters: PathParameters,
    headers: dict[str, str],
    change: Change,
    requests: Requests,
) -> None:
    declared = {int(status) for status in operation.definition.raw["responses"] if status.isdigit()}
    names = {parameter.name for parameter in operation.path_parameters}
    existing = {name: value for name, value in path_parameters().items() if name in names}

    @seed
    @hypothesis.settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=False,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(st.one_of(*_strategies(operation, existing)))
    def send(case: schemathesis.Case) -> None:
        if existing and existing.items() <= case.path_parameters.items():
            case.path_parameters.update((name, value) for name, value in path_parameters().items() if name in names)
        change(case)
        requests.sent.append(case)
        answer = case.call(headers=headers)
        requests.statuses[answer.status_code] += 1
        what = f"{case.as_curl_command()}\n{answer.status_code}: {answer.text[:2000]}"
        assert answer.status_code < 500 or answer.status_code in declared, what
        if answer.status_code >= 400:
            assert list(answer.json()) == ["errors"], what
        elif answer.status_code in declared:
            case.validate_response(answer, checks=CHECKS.get_by_names(["response_schema_conformance"]))

    send()


def _strategies(operation: APIOperation, existing: Mapping[str, str]) -> Iterator[st.SearchStrategy[schemathesis.Case]]:
    modes = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)
    for mode, parameters in itertools.product(modes, (existing, {}) if existing else ({},)):
        yield operation.as_strategy(mode, path_parameters=dict(parameters) or None)
