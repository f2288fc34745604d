"""`millstream txn list | abort`: transactions that a dead job left open at Kafka's brokers.

Promises: `list` changes nothing; `abort` ends exactly the ids it is given, and says so.
Does not know: Kafka's protocol."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from millstream.connectors.kafka.open_transactions import OpenTransaction, abort, listed
from millstream.connectors.kafka.properties import translated
from millstream.errors import UserError
from millstream.graph.explain import printable

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_ABOUT = """\
An open transaction holds back everything behind it from readers of committed data, until it ends. A job that is started
again ends its own; `abort` is for one that will not come back. A job that still runs repeats the transaction that was
aborted."""


class NotAProperty(UserError):
    """A property that is not written as name=value."""

    def __init__(self, text: str) -> None:
        super().__init__(f"'{text}' is not name=value", hint="--property security.protocol=SASL_SSL")


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("txn", help="list or abort open Kafka transactions", description=_ABOUT)
    what = parser.add_subparsers(title="what to do", metavar="<what>", required=True)
    lister = what.add_parser("list", help="show open transactions")
    lister.add_argument("--prefix", default="", help="only ids that begin with this")
    lister.add_argument("--all", action="store_true", help="also ids whose last transaction has ended")
    lister.set_defaults(run=_list)
    aborter = what.add_parser("abort", help="abort the transactions of ids")
    aborter.add_argument("ids", nargs="+", metavar="ID", help="a transactional id, as `list` shows it")
    aborter.set_defaults(run=_abort)
    for each in (lister, aborter):
        each.add_argument("--bootstrap-servers", required=True, metavar="HOST:PORT", help="where the brokers are")
        each.add_argument("--property", action="append", default=[], metavar="NAME=VALUE", help="of Kafka's client")


def _settings(args: argparse.Namespace) -> dict[str, str]:
    pairs = [text.partition("=") for text in args.property]
    for text, (name, equals, _) in zip(args.property, pairs, strict=True):
        if not name or not equals:
            raise NotAProperty(text)
    return translated({name: value for name, _, value in pairs})


def _list(args: argparse.Namespace) -> int:
    found = listed(args.bootstrap_servers, _settings(args), args.prefix, everything=args.all)
    if not found:
        print("no transaction is open")
        return 0
    for each in found:
        print(printable(_line(each)))
    return 0


def _line(each: OpenTransaction) -> str:
    if each.started is None:
        return f"{each.id}  {each.state}"
    since = datetime.fromtimestamp(each.started / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    topics = ", ".join(each.topics) or "no topic yet"
    return f"{each.id}  {each.state} since {since}, ends by itself after {each.timeout / 1000:g} s  ({topics})"


def _abort(args: argparse.Namespace) -> int:
    settings = _settings(args)
    for name in args.ids:
        abort(args.bootstrap_servers, settings, name)
        print(f"nothing is open any more under {name}")
    return 0
