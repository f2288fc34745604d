"""Which classes a table may name as a protobuf message: importing a module runs it."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import pytest

from millstream.formats import format_named
from millstream.formats.protobuf import MessageClassRefused
from millstream.types.factory import Types

SECONDS = Types.ROW_NAMED(["seconds"], [Types.LONG()])
GENERATED = "from google.protobuf.timestamp_pb2 import Timestamp as Moment\n"


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules that tables name; all but the generated one leave a trace when they run."""
    trace = f"import pathlib\npathlib.Path({str(tmp_path / 'trace')!r}).touch()\n"
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "__init__.py").write_text(trace)
    (tmp_path / "shop_pb2.py").write_text(GENERATED)
    (tmp_path / "shop.py").write_text(trace + GENERATED)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in ("inside", "shop", "shop_pb2"):
        sys.modules.pop(name, None)


def _format(name: str) -> object:
    return format_named("protobuf", SECONDS, {"message-class-name": name})


def test_a_generated_module_is_imported() -> None:
    _format("shop_pb2.Moment")
    _format("google.protobuf.timestamp_pb2.Timestamp")


@pytest.mark.parametrize("name", ["shop.Moment", "inside.absent_pb2.M", "inside.M", "absent_pb2.M", "inside", "", "."])
def test_no_other_module_is_imported(tmp_path: Path, name: str) -> None:
    with pytest.raises(MessageClassRefused):
        _format(name)
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("name", ["os.system", "subprocess.Popen", "shop_pb2.absent", "pickle.loads"])
def test_a_class_that_is_not_a_message_is_refused(name: str) -> None:
    with pytest.raises(MessageClassRefused):
        _format(name)


def test_a_module_that_the_program_imported_may_be_named_and_workers_find_it() -> None:
    import shop  # type: ignore[import-not-found]

    made = pickle.dumps(_format("shop.Moment"))
    del sys.modules["shop"], shop
    pickle.loads(made)
