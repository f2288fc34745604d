"""StreamExecutionEnvironment: where programs begin and are run.

Promises: PyFlink's names and defaults; what the command line gave are the defaults of every environment.
Does not know: engines; it hands a stream graph to the client."""

from __future__ import annotations

import dataclasses
import itertools
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from millstream import options
from millstream.client import local
from millstream.client.job_client import JobClient, JobExecutionResult
from millstream.client.job_listener import JobListener, notify_listeners
from millstream.common.execution_config import ExecutionConfig
from millstream.config.configuration import Configuration, parse_list, parse_map, quoted
from millstream.config.resources import SlotSharingGroup
from millstream.connector.source import Source
from millstream.connectors.collection import CollectionSource
from millstream.connectors.receiver import ReceiverSource, SocketTextReceiver
from millstream.datastream.caching import Caches
from millstream.datastream.checkpoint_config import CheckpointConfig
from millstream.datastream.checkpointing_mode import CheckpointingMode
from millstream.datastream.data_stream import DataStream
from millstream.datastream.execution_mode import RuntimeExecutionMode
from millstream.datastream.program import Program
from millstream.errors import MillstreamError, UserError
from millstream.event_time.watermarks import WatermarkStrategy
from millstream.files.locations import is_uri
from millstream.functions.type_variables import T
from millstream.graph.batch import for_mode
from millstream.graph.explain import flink_json
from millstream.graph.stream_graph import StreamGraph, stream_graph
from millstream.graph.transformations import Input, Transformation
from millstream.runtime.operators.source import SourceSpec
from millstream.runtime.operators.timestamps import TimestampsSpec
from millstream.serialization import codec
from millstream.state_descriptors.descriptors import as_type
from millstream.types.basic_types import PickledBytesTypeInfo
from millstream.types.factory import TypeInformation, Types
from millstream.types.type_hints import type_of_hint

_log = logging.getLogger("millstream.job")

_environments = itertools.count(1)
_default_parallelism: list[int] = []


class StreamExecutionEnvironment:
    """A program in the making, its configuration, and the button that runs it."""

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration()
        for key, value in local.defaults().items():
            self._configuration.set_string(key, value)
        if configuration is not None:
            self._configuration.add_all(configuration)
        self._program = Program()
        self._listeners: list[Callable[[Any], None]] = []
        self._classes: dict[type, None] = {}
        self._job_listeners: list[JobListener] = []
        self._caches = Caches(self._configuration)
        self._collect_prefix = f"collect-{os.getpid()}-{next(_environments)}"

    @staticmethod
    def get_execution_environment(configuration: Configuration | None = None) -> StreamExecutionEnvironment:
        """A new environment."""
        return StreamExecutionEnvironment(configuration)

    # ------------------------------------------------------------------------------------------------ configuration

    def get_config(self) -> ExecutionConfig:
        """The execution config, a view on the configuration."""
        return ExecutionConfig(self._configuration)

    def get_checkpoint_config(self) -> CheckpointConfig:
        """The checkpoint config, a view on the configuration."""
        return CheckpointConfig(self._configuration)

    def configure(self, configuration: Configuration) -> StreamExecutionEnvironment:
        """Take options over."""
        self._configuration.add_all(configuration)
        return self

    def set_parallelism(self, parallelism: int) -> StreamExecutionEnvironment:
        """The parallelism of operators that have none of their own."""
        if not isinstance(parallelism, int) or parallelism < 1:
            msg = f"a parallelism of {parallelism!r} is not possible"
            raise UserError(msg, hint="give an int of at least 1")
        self._configuration.set(options.PARALLELISM, parallelism)
        return self

    def get_parallelism(self) -> int:
        """The default parallelism: as set, else the number of cores."""
        if self._configuration.contains(options.PARALLELISM):
            return self._configuration.get(options.PARALLELISM)
        return self.get_default_local_parallelism()

    def set_max_parallelism(self, max_parallelism: int) -> StreamExecutionEnvironment:
        """The most subtasks the program may ever be rescaled to."""
        if not isinstance(max_parallelism, int) or not 0 < max_parallelism <= 32768:
            msg = f"a max parallelism of {max_parallelism!r} is not possible"
            raise UserError(msg, hint="give 1 to 32768")
        self._configuration.set(options.MAX_PARALLELISM, max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """The max parallelism, -1 when it is not set."""
        return self._configuration.get(options.MAX_PARALLELISM)

    def get_default_local_parallelism(self) -> int:
        """The parallelism of environments that say nothing."""
        return _default_parallelism[-1] if _default_parallelism else (os.cpu_count() or 1)

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """The parallelism of environments that say nothing."""
        _default_parallelism[:] = [parallelism]

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> StreamExecutionEnvironment:
        """STREAMING, BATCH or AUTOMATIC."""
        self._configuration.set(options.RUNTIME_MODE, execution_mode.name)
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> StreamExecutionEnvironment:
        """Accepted for PyFlink programs: epochs have no buffers that could wait."""
        self._configuration.set(options.BUFFER_TIMEOUT, f"{timeout_millis} ms")
        return self

    def get_buffer_timeout(self) -> int:
        """What was set."""
        return self._configuration.get(options.BUFFER_TIMEOUT).to_milliseconds()

    def disable_operator_chaining(self) -> StreamExecutionEnvironment:
        """Make every edge an exchange."""
        self._configuration.set(options.OPERATOR_CHAINING, False)
        return self

    def is_chaining_enabled(self) -> bool:
        """Whether operators are fused where they can be."""
        return self._configuration.get(options.OPERATOR_CHAINING)

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """Whether operators whose max parallelism differs are fused too."""
        return self._configuration.get(options.CHAIN_MIXED_MAX_PARALLELISM)

    def enable_checkpointing(self, interval: int, mode: CheckpointingMode | None = None) -> StreamExecutionEnvironment:
        """Take a checkpoint every `interval` milliseconds."""
        config = self.get_checkpoint_config()
        config.set_checkpoint_interval(interval)
        if mode is not None:
            config.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_interval(self) -> int:
        """The checkpoint interval in milliseconds, -1 when checkpoints are off."""
        return self.get_checkpoint_config().get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Exactly once or at least once."""
        return self.get_checkpoint_config().get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """Exactly once or at least once."""
        return self.get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Whether unaligned checkpoints were asked for; an epoch boundary needs no alignment."""
        return self._configuration.get(options.UNALIGNED_CHECKPOINTS)

    def is_force_unaligned_checkpoints(self) -> bool:
        """Whether unaligned checkpoints were forced; an epoch boundary needs no alignment."""
        return self._configuration.get(options.FORCE_UNALIGNED_CHECKPOINTS)

    def enable_changelog_state_backend(self, enabled: bool) -> StreamExecutionEnvironment:
        """Accepted either way: state is written as what changed, always."""
        self._configuration.set(options.STATE_CHANGELOG, bool(enabled))
        return self

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """What was said, if anything."""
        return self._configuration.get(options.STATE_CHANGELOG)

    def set_default_savepoint_directory(self, directory: str) -> StreamExecutionEnvironment:
        """Where savepoints go unless they are told otherwise."""
        self._configuration.set(options.SAVEPOINT_DIR, directory)
        return self

    def get_default_savepoint_directory(self) -> str | None:
        """Where savepoints go unless they are told otherwise."""
        return self._configuration.get(options.SAVEPOINT_DIR)

    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> StreamExecutionEnvironment:
        """Make a group's resources known."""
        if slot_sharing_group.get_name() == "":
            msg = "a slot sharing group needs a name"
            raise UserError(msg)
        return self

    def set_python_executable(self, python_exec: str) -> StreamExecutionEnvironment:
        """The Python that tasks run on."""
        self._configuration.set(options.PYTHON_EXECUTABLE, python_exec)
        return self

    def add_python_file(self, file_path: str) -> None:
        """Have a module, a package, a directory of modules or a zip of them importable in every task."""
        self._append(options.PYTHON_FILES, file_path, ",")

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Have the packages of a requirements file installed for every task, without a network from a directory."""
        given = [requirements_file_path, requirements_cache_dir]
        self._configuration.set(options.PYTHON_REQUIREMENTS, "#".join(each for each in given if each is not None))

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Have a zip or tar archive unpacked where tasks run: into `target_dir`, else a directory of its own name."""
        given = archive_path if target_dir is None else f"{archive_path}#{target_dir}"
        self._append(options.PYTHON_ARCHIVES, given, ",")

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """Have a file or directory on every worker: `RuntimeContext.get_distributed_cache().get_file(name)`."""
        known = self._configuration.get(options.CACHED_FILES) or ""
        if name in (parse_map(entry).get("name") for entry in parse_list(known)):
            msg = f"a cached file is registered as '{name}' already"
            raise UserError(msg, hint="register each under its own name")
        entry = f"name:{quoted(name)},path:{quoted(file_path)},executable:{str(bool(executable)).lower()}"
        self._append(options.CACHED_FILES, entry, ";")

    def add_jars(self, *jars_path: str) -> None:
        """Accepted for PyFlink programs: no Java code is loaded, which is said once when the job starts."""
        for path in jars_path:
            self._append(options.JARS, path, ";")

    def add_classpaths(self, *classpaths: str) -> None:
        """Accepted for PyFlink programs: no Java code is loaded, which is said once when the job starts."""
        for path in classpaths:
            self._append(options.CLASSPATHS, path, ";")

    def _append(self, option: options.Option[str | None], text: str, separator: str) -> None:
        known = self._configuration.get(option)
        self._configuration.set(option, text if known is None else f"{known}{separator}{text}")

    def register_type(self, *classes: type) -> StreamExecutionEnvironment:
        """Allow instances of these classes in untyped state."""
        codec.declare(*classes)
        self._classes.update(dict.fromkeys(classes))
        return self

    def register_listener(self, listener: Callable[[Any], None]) -> StreamExecutionEnvironment:
        """Have `listener` called with every epoch, checkpoint and change of status of the jobs run from here.

        It is called in the job's own thread, with the values of `millstream.cluster.job_events`. An error that it
        raises does not fail the job: the first one of a listener is logged with its traceback."""
        self._listeners.append(listener)
        return self

    def register_job_listener(self, job_listener: Any) -> StreamExecutionEnvironment:
        """Have `job_listener` told of every job of this environment."""
        if not isinstance(job_listener, JobListener):
            msg = f"{job_listener!r} is not a JobListener"
            raise UserError(msg, hint="subclass JobListener; for every epoch and checkpoint see register_listener")
        self._job_listeners.append(job_listener)
        return self

    def clear_job_listeners(self) -> StreamExecutionEnvironment:
        """Tell nobody any more."""
        self._job_listeners.clear()
        return self

    # ----------------------------------------------------------------------------------------------------- sources

    def _stream(self, number: int) -> DataStream:
        return DataStream(self, (Input(number),))

    def from_collection(self, collection: Iterable[T], type_info: TypeInformation | None = None) -> DataStream[T]:
        """Create a stream of the elements of a collection; one subtask reads them.

        Args:
            collection: The elements.
            type_info: The type of the elements. Without it, the type is derived from them.

        """
        elements = list(collection)
        kind = as_type(type_info) if type_info is not None else _type_of_elements(elements)
        source = CollectionSource(elements, kind)
        return self.from_source(source, WatermarkStrategy.no_watermarks(), "Collection Source")

    def from_source(
        self,
        source: Any,
        watermark_strategy: WatermarkStrategy,
        source_name: str,
        type_info: TypeInformation | None = None,
    ) -> DataStream[Any]:
        """Create a stream of the records of a source.

        Args:
            source: A source such as `FileSource`, `KafkaSource` or one of your own.
            watermark_strategy: How watermarks are generated, for each split.
            source_name: The name of the operator.
            type_info: The type of the records, if the source does not have one.

        """
        if not isinstance(source, Source):
            msg = f"{source!r} is not a source"
            raise UserError(msg, hint="build it first: FileSource...build()")
        kind = as_type(type_info) if type_info is not None else source.type_info()
        spec = SourceSpec(source, watermark_strategy)
        return self._stream(self._program.add(f"Source: {source_name}", spec, kind, source=source))

    def socket_text_stream(self, host: str, port: int, delimiter: str = "\n", max_retry: int = 0) -> DataStream[str]:
        """Text from a server, cut at the delimiter. It is received on the driver into a log below the checkpoint
        directory, so that what was received is processed exactly once. The stream ends when the server hangs up.

        The connection is made anew up to `max_retry` times, -1 for ever."""
        directory = self._configuration.get(options.CHECKPOINT_DIR)
        if directory is not None and is_uri(directory):
            msg = f"what is received cannot be kept in {directory}, which is no directory"
            raise UserError(msg, hint="build a ReceiverSource, and give it a directory")
        parent = None if directory is None else os.path.join(directory.removeprefix("file://"), "received")
        receiver = SocketTextReceiver(host, port, delimiter, max_retry)
        source = ReceiverSource(receiver, None, Types.STRING(), parent=parent)
        return self.from_source(source, WatermarkStrategy.no_watermarks(), "Socket Stream")

    # ---------------------------------------------------------------------------------------------------- running

    def _graph(self) -> StreamGraph:
        limit = self.get_max_parallelism()
        steps = tuple(self._program.transformations.values())
        self._check(steps)
        if self.get_config().get_auto_watermark_interval() == 0:
            steps = tuple(without_periodic_watermarks(step) for step in steps)
        graph = stream_graph(
            steps,
            parallelism=self.get_parallelism(),
            max_parallelism=limit if limit > 0 else None,
            chaining=self.is_chaining_enabled(),
            chain_mixed_max_parallelism=self.is_chaining_of_operators_with_different_max_parallelism_enabled(),
        )
        mode = self._configuration.get(options.RUNTIME_MODE)
        graph = for_mode(graph, mode, combine=self._configuration.get(options.PRE_AGGREGATION))
        return dataclasses.replace(graph, classes=tuple(self._classes))

    def _check(self, steps: Sequence[Transformation]) -> None:
        """Refuse what the execution config does not allow."""
        config = self.get_config()
        for step in steps:
            if not config.has_auto_generated_uids_enabled() and step.uid is None and step.uid_hash is None:
                msg = f"operator '{step.name}' has no uid, and none may be made up ({options.AUTO_GENERATE_UIDS.key})"
                raise UserError(msg, hint="call uid() on it")
            untyped = step.sink is None and isinstance(step.output_type, PickledBytesTypeInfo)
            if untyped and config.has_generic_types_disabled():
                msg = f"the records of '{step.name}' have no declared type ({options.GENERIC_TYPES.key})"
                raise UserError(msg, hint="give output_type, or annotate what the function returns")

    def get_execution_plan(self) -> str:
        """The program as JSON, in the shape of Flink's plan visualizer."""
        return flink_json(self._graph())

    def execute_async(self, job_name: str = "Flink Streaming Job") -> JobClient:
        """Start the program; the environment can then be used for another one."""
        try:
            client = self._submit(job_name)
        except Exception as problem:
            failure = problem
            notify_listeners(self._job_listeners, lambda listener: listener.on_job_submitted(None, failure))
            raise
        notify_listeners(self._job_listeners, lambda listener: listener.on_job_submitted(client, None))
        return client

    def _submit(self, job_name: str) -> JobClient:
        name = self._configuration.get(options.PIPELINE_NAME) or job_name
        graph = self._graph()
        try:
            client = local.submit(graph, self._configuration, name, tuple(self._listeners))
            self._caches.submitted(self._program, client)
        finally:
            self._program.clear()
        return client

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run the program to its end; Ctrl-C cancels it, or stops it with a savepoint (`millstream.on-interrupt`)."""
        client = self.execute_async(job_name or "Flink Streaming Job")
        try:
            while not client.wait(0.2):
                pass
        except KeyboardInterrupt:
            self._interrupt(client)
            raise
        try:
            result: JobExecutionResult = client.get_job_execution_result().result()
        except Exception as problem:
            failure = problem
            notify_listeners(self._job_listeners, lambda listener: listener.on_job_executed(None, failure))
            raise
        notify_listeners(self._job_listeners, lambda listener: listener.on_job_executed(result, None))
        return result

    def _interrupt(self, client: JobClient) -> None:
        if self._configuration.get(options.ON_INTERRUPT) == "savepoint":
            try:
                path = client.stop_with_savepoint(False).result()
            except MillstreamError as problem:
                _log.warning("the job is cancelled without a savepoint: %s", problem)
            else:
                _log.warning("the job was stopped with the savepoint %s", path)
                return
        client.cancel().result()

    def close(self) -> None:
        """Forget the program, and what was cached."""
        self._program.forget()
        self._caches.invalidate()

    def __repr__(self) -> str:
        operators = len(self._program.transformations)
        return f"StreamExecutionEnvironment(parallelism={self.get_parallelism()}, {operators} operators)"


def without_periodic_watermarks(step: Transformation) -> Transformation:
    """The step, with no watermarks but those of single events and of the end."""
    if isinstance(step.spec, SourceSpec | TimestampsSpec):
        return dataclasses.replace(step, spec=dataclasses.replace(step.spec, periodic=False))
    return step


def _type_of_elements(elements: list[Any]) -> TypeInformation:
    """The dataclass or NamedTuple all elements are of; else untyped, as in PyFlink."""
    kinds = set(map(type, elements))
    if len(kinds) == 1:
        (kind,) = kinds
        if hasattr(kind, "__dataclass_fields__") or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
            return type_of_hint(kind) or Types.PICKLED_BYTE_ARRAY()
    return Types.PICKLED_BYTE_ARRAY()
