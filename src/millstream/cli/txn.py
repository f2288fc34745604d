"""`millstream txn list | abort`: open Kafka transactions of jobs that do not run any more.

Promises: `list` changes nothing; `abort` aborts the transactions of the named ids and no others.
Does not know: the protocol of Kafka."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from millstream.connectors.kafka.open_transactions import OpenTransaction, abort, list_transactions
from millstream.connectors.kafka.properties import translate_properties
from millstream.errors import UserError
from millstream.graph.explain import printable

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_ABOUT = """\
An open transaction hides all later records of its partitions from consumers with isolation level read_committed. A job
that is started again ends its own transactions; use `abort` for jobs that will not be started again. A running job
repeats a transaction that was aborted."""


class NotAProperty(UserError):
    """A property does not have the form name=value."""

    def __init__(self, text: str) -> None:
        super().__init__(
            f"'{text}' is not name=value", hint="write a property as --property security.protocol=SASL_SSL"
        )


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("txn", help="list or abort open Kafka transactions", description=_ABOUT)
    actions = parser.add_subparsers(title="actions", metavar="<action>", required=True)
    lister = actions.add_parser("list", help="list open transactions")
    lister.add_argument("--prefix", default="", help="list only transactional ids with this prefix")
    lister.add_argument("--all", action="store_true", help="also list ids whose last transaction has ended")
    lister.add_argument("--json", action="store_true", help="print JSON")
    lister.set_defaults(run=_list)
    aborter = actions.add_parser("abort", help="abort the open transactions of transactional ids")
    aborter.add_argument("ids", nargs="+", metavar="ID", help="a transactional id, as `list` shows it")
    aborter.set_defaults(run=_abort)
    for action in (lister, aborter):
        action.add_argument("--bootstrap-servers", required=True, metavar="HOST:PORT", help="the Kafka brokers")
        action.add_argument(
            "--property", action="append", default=[], metavar="NAME=VALUE", help="set a property of the Kafka client"
        )


def _client_properties(args: argparse.Namespace) -> dict[str, str]:
    pairs = [text.partition("=") for text in args.property]
    for text, (name, equals, _) in zip(args.property, pairs, strict=True):
        if not name or not equals:
            raise NotAProperty(text)
    return translate_properties({name: value for name, _, value in pairs})


def _list(args: argparse.Namespace) -> int:
    transactions = list_transactions(args.bootstrap_servers, _client_properties(args), args.prefix, everything=args.all)
    if args.json:
        print(json.dumps([asdict(transaction) for transaction in transactions], indent=2))
        return 0
    if not transactions:
        print("no transaction is open")
        return 0
    for transaction in transactions:
        print(printable(_format_transaction(transaction)))
    return 0


def _format_transaction(transaction: OpenTransaction) -> str:
    title = f"{transaction.id}  {transaction.state}"
    if transaction.started is None:
        return title
    since = datetime.fromtimestamp(transaction.started / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    topics = ", ".join(transaction.topics) or "no topic yet"
    return f"{title} since {since}, times out after {transaction.timeout / 1000:g} s  ({topics})"


def _abort(args: argparse.Namespace) -> int:
    properties = _client_properties(args)
    for transactional_id in args.ids:
        abort(args.bootstrap_servers, properties, transactional_id)
        print(f"no transaction of {transactional_id} is open any more")
    return 0
