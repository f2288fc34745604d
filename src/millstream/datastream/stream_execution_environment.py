"""StreamExecutionEnvironment: creates sources and executes programs.

Promises: PyFlink's names and defaults; options of the command line are defaults of every environment.
Does not know: engines; it submits a stream graph through the client."""

from __future__ import annotations

import dataclasses
import itertools
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from millstream import options
from millstream.client import html, local
from millstream.client.job_client import JobClient, JobExecutionResult
from millstream.client.job_display import wait_for_end
from millstream.client.job_listener import JobListener, notify_listeners
from millstream.client.uncaught_errors import install_excepthook
from millstream.common.execution_config import ExecutionConfig
from millstream.config.configuration import Configuration, parse_list, parse_map, quote_if_needed
from millstream.config.resources import SlotSharingGroup, merge_resources
from millstream.connector.serialization_schema import InputFormat
from millstream.connector.source import Source
from millstream.connectors.collection import CollectionSource
from millstream.connectors.receiver import ReceiverSource, SocketTextReceiver
from millstream.datastream.caching import Caches
from millstream.datastream.checkpoint_config import CheckpointConfig
from millstream.datastream.checkpointing_mode import CheckpointingMode
from millstream.datastream.data_stream import DataStream
from millstream.datastream.execution_mode import RuntimeExecutionMode
from millstream.datastream.program import Program
from millstream.errors import InvalidArgument, InvalidArgumentType, MillstreamError, UserError
from millstream.event_time.watermarks import WatermarkStrategy
from millstream.files.locations import is_uri
from millstream.functions.type_variables import T
from millstream.graph.batch import rewrite_for_mode
from millstream.graph.execution_plan import execution_plan
from millstream.graph.explain import flink_json
from millstream.graph.job_graph import job_graph
from millstream.graph.picture import svg
from millstream.graph.stream_graph import StreamGraph, stream_graph
from millstream.graph.transformations import Input, Transformation
from millstream.runtime.operators.source import SourceSpec
from millstream.runtime.operators.timestamps import TimestampsSpec
from millstream.serialization import codec
from millstream.state_descriptors.descriptors import as_type
from millstream.types.basic_types import PickledBytesTypeInfo
from millstream.types.factory import TypeInformation, Types
from millstream.types.type_hints import find_type_of_hint

_log = logging.getLogger("millstream.job")

_environments = itertools.count(1)
_default_parallelism: list[int] = []


class StreamExecutionEnvironment:
    """The context of a program: its configuration, its sources, and its execution.

    Calls on the environment and its streams describe a program. `execute` submits it and waits for its result.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env = env.set_parallelism(2).enable_checkpointing(10_000)
        >>> sink = env.from_collection([1, 2, 3]).map(lambda number: number + 1).print()

    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        install_excepthook()
        self._configuration = Configuration()
        for key, value in local.defaults().items():
            self._configuration.set_string(key, value)
        if configuration is not None:
            self._configuration.add_all(configuration)
        self._program = Program(self.get_parallelism)
        self._listeners: list[Callable[[Any], None]] = []
        self._classes: dict[type, None] = {}
        self._job_listeners: list[JobListener] = []
        self._caches = Caches(self._configuration)
        self._collect_prefix = f"collect-{os.getpid()}-{next(_environments)}"

    @staticmethod
    def get_execution_environment(configuration: Configuration | None = None) -> StreamExecutionEnvironment:
        """Create an environment.

        Args:
            configuration: Options, which override those of the command line and the configuration file.

        """
        return StreamExecutionEnvironment(configuration)

    # ------------------------------------------------------------------------------------------------ configuration

    def get_config(self) -> ExecutionConfig:
        """Return the execution config, a view of the configuration."""
        return ExecutionConfig(self._configuration)

    def get_checkpoint_config(self) -> CheckpointConfig:
        """Return the checkpoint config, a view of the configuration."""
        return CheckpointConfig(self._configuration)

    def configure(self, configuration: Configuration) -> StreamExecutionEnvironment:
        """Set all options of a configuration in this environment.

        Args:
            configuration: The options.

        """
        self._configuration.add_all(configuration)
        return self

    def set_parallelism(self, parallelism: int) -> StreamExecutionEnvironment:
        """Set the default parallelism of operators that set none.

        Args:
            parallelism: The number of subtasks, at least 1.

        Raises:
            UserError: The number is not possible.

        """
        if not isinstance(parallelism, int) or parallelism < 1:
            msg = f"a parallelism of {parallelism!r} is not possible"
            raise InvalidArgument(msg, hint="use an int of at least 1")
        self._configuration.set(options.PARALLELISM, parallelism)
        return self

    def get_parallelism(self) -> int:
        """Return the default parallelism; if it is not set, the number of cores."""
        if self._configuration.contains(options.PARALLELISM):
            return self._configuration.get(options.PARALLELISM)
        return self.get_default_local_parallelism()

    def set_max_parallelism(self, max_parallelism: int) -> StreamExecutionEnvironment:
        """Set the max parallelism: the number of key groups, and the highest parallelism after a rescale.

        Args:
            max_parallelism: From 1 to 32768.

        Raises:
            UserError: The number is not possible.

        """
        if not isinstance(max_parallelism, int) or not 0 < max_parallelism <= 32768:
            msg = f"a max parallelism of {max_parallelism!r} is not possible"
            raise InvalidArgument(msg, hint="use a number from 1 to 32768")
        self._configuration.set(options.MAX_PARALLELISM, max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """Return the max parallelism; -1 if it is not set."""
        return self._configuration.get(options.MAX_PARALLELISM)

    def get_default_local_parallelism(self) -> int:
        """Return the parallelism of environments of this process that set none."""
        return _default_parallelism[-1] if _default_parallelism else (os.cpu_count() or 1)

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """Set the parallelism of environments of this process that set none.

        Args:
            parallelism: The number of subtasks.

        """
        _default_parallelism[:] = [parallelism]

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> StreamExecutionEnvironment:
        """Set the execution mode: STREAMING, BATCH or AUTOMATIC.

        Args:
            execution_mode: The mode.

        """
        self._configuration.set(options.RUNTIME_MODE, execution_mode.name)
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> StreamExecutionEnvironment:
        """Accept the timeout without effect: epochs have no network buffers that could wait.

        Args:
            timeout_millis: Milliseconds.

        """
        self._configuration.set(options.BUFFER_TIMEOUT, f"{timeout_millis} ms")
        return self

    def get_buffer_timeout(self) -> int:
        """Return the buffer timeout in milliseconds that was set."""
        return self._configuration.get(options.BUFFER_TIMEOUT).to_milliseconds()

    def disable_operator_chaining(self) -> StreamExecutionEnvironment:
        """Disable operator chaining: every edge is an exchange."""
        self._configuration.set(options.OPERATOR_CHAINING, False)
        return self

    def is_chaining_enabled(self) -> bool:
        """Return whether operators are chained where possible."""
        return self._configuration.get(options.OPERATOR_CHAINING)

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """Return whether operators with different max parallelism are chained, too."""
        return self._configuration.get(options.CHAIN_MIXED_MAX_PARALLELISM)

    def enable_checkpointing(self, interval: int, mode: CheckpointingMode | None = None) -> StreamExecutionEnvironment:
        """Enable checkpoints.

        Args:
            interval: The interval between the starts of two checkpoints, in milliseconds.
            mode: Exactly once (the default) or at least once.

        """
        config = self.get_checkpoint_config()
        config.set_checkpoint_interval(interval)
        if mode is not None:
            config.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_interval(self) -> int:
        """Return the checkpoint interval in milliseconds; -1 if checkpointing is disabled."""
        return self.get_checkpoint_config().get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Return the checkpointing mode: exactly once or at least once."""
        return self.get_checkpoint_config().get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """Return the checkpointing mode; the same as `get_checkpointing_mode`."""
        return self.get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Return whether unaligned checkpoints were enabled; it has no effect, because checkpoints need no
        alignment."""
        return self._configuration.get(options.UNALIGNED_CHECKPOINTS)

    def is_force_unaligned_checkpoints(self) -> bool:
        """Return whether unaligned checkpoints were forced; it has no effect, because checkpoints need no alignment."""
        return self._configuration.get(options.FORCE_UNALIGNED_CHECKPOINTS)

    def enable_changelog_state_backend(self, enabled: bool) -> StreamExecutionEnvironment:
        """Accept the setting without effect: checkpoints always contain only changes of state.

        Args:
            enabled: Ignored.

        """
        self._configuration.set(options.STATE_CHANGELOG, bool(enabled))
        return self

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """Return what was set by `enable_changelog_state_backend`; None if nothing was set."""
        return self._configuration.get(options.STATE_CHANGELOG)

    def set_default_savepoint_directory(self, directory: str) -> StreamExecutionEnvironment:
        """Set the directory of savepoints that are triggered without one.

        Args:
            directory: The path or URI.

        """
        self._configuration.set(options.SAVEPOINT_DIR, directory)
        return self

    def get_default_savepoint_directory(self) -> str | None:
        """Return the directory of savepoints that are triggered without one; None if it is not set."""
        return self._configuration.get(options.SAVEPOINT_DIR)

    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> StreamExecutionEnvironment:
        """Reserve the CPU cores and external resources of a slot sharing group for each slot of the job.

        A slot runs the subtasks of all groups, one after another, so it gets the largest amount of each resource. On
        clusters, Spark's stage-level scheduling reserves it; memory is what executors have.

        Args:
            slot_sharing_group: The group.

        """
        if slot_sharing_group.get_name() == "":
            msg = "a slot sharing group needs a name"
            raise InvalidArgument(msg)
        resources = merge_resources(self._configuration.get(options.SLOT_RESOURCES), slot_sharing_group)
        if resources:
            self._configuration.set(options.SLOT_RESOURCES, resources)
        return self

    def set_python_executable(self, python_exec: str) -> StreamExecutionEnvironment:
        """Set the path of the Python interpreter for tasks.

        Args:
            python_exec: The path on the workers.

        """
        self._configuration.set(options.PYTHON_EXECUTABLE, python_exec)
        return self

    def add_python_file(self, file_path: str) -> None:
        """Make a module, a package, a directory of modules or a zip archive of them importable in all tasks.

        Args:
            file_path: The path on this machine.

        """
        self._append(options.PYTHON_FILES, file_path, ",")

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Install the packages of a requirements file for all tasks.

        Args:
            requirements_file_path: The requirements file.
            requirements_cache_dir: A directory with the packages, from which they are installed without a network.

        """
        paths = [requirements_file_path, requirements_cache_dir]
        self._configuration.set(options.PYTHON_REQUIREMENTS, "#".join(path for path in paths if path is not None))

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Unpack a zip or tar archive in the working directory of all tasks.

        Args:
            archive_path: The archive.
            target_dir: The directory to unpack it to; by default the name of the archive.

        """
        entry = archive_path if target_dir is None else f"{archive_path}#{target_dir}"
        self._append(options.PYTHON_ARCHIVES, entry, ",")

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """Copy a file or directory to all workers, where `RuntimeContext.get_distributed_cache().get_file(name)` finds
        it.

        Args:
            file_path: The file or directory.
            name: The name under which functions find it.
            executable: Whether the file is made executable.

        Raises:
            UserError: Another file is registered under this name.

        """
        registered = self._configuration.get(options.CACHED_FILES) or ""
        if name in (parse_map(entry).get("name") for entry in parse_list(registered)):
            msg = f"a cached file is registered as '{name}' already"
            raise InvalidArgument(msg, hint="register each file under its own name")
        entry = (
            f"name:{quote_if_needed(name)},path:{quote_if_needed(file_path)},executable:{str(bool(executable)).lower()}"
        )
        self._append(options.CACHED_FILES, entry, ";")

    def add_jars(self, *jars_path: str) -> None:
        """Accept the paths without effect: no Java code is loaded. A warning is logged when the job starts.

        Args:
            *jars_path: URLs.

        """
        for path in jars_path:
            self._append(options.JARS, path, ";")

    def add_classpaths(self, *classpaths: str) -> None:
        """Accept the paths without effect: no Java code is loaded. A warning is logged when the job starts.

        Args:
            *classpaths: URLs.

        """
        for path in classpaths:
            self._append(options.CLASSPATHS, path, ";")

    def _append(self, option: options.Option[str | None], text: str, separator: str) -> None:
        current = self._configuration.get(option)
        self._configuration.set(option, text if current is None else f"{current}{separator}{text}")

    def register_type(self, *classes: type) -> StreamExecutionEnvironment:
        """Allow instances of these classes in untyped records and state.

        Args:
            *classes: The classes.

        """
        codec.declare(*classes)
        self._classes.update(dict.fromkeys(classes))
        return self

    def register_listener(self, listener: Callable[[Any], None]) -> StreamExecutionEnvironment:
        """Register a function that is called for every epoch, checkpoint and change of status of this environment's
        jobs.

        It is called in the thread of the job. An error that it raises does not fail the job: the first error of a
        listener is logged with its traceback.

        Args:
            listener: A function of one job event; see `millstream.cluster.job_events`.

        """
        self._listeners.append(listener)
        return self

    def register_job_listener(self, job_listener: Any) -> StreamExecutionEnvironment:
        """Register a `JobListener`, which is notified when a job of this environment is submitted or executed.

        Args:
            job_listener: The listener.

        Raises:
            UserError: The argument is not a `JobListener`.

        """
        if not isinstance(job_listener, JobListener):
            msg = f"{job_listener!r} is not a JobListener"
            raise InvalidArgumentType(
                msg, hint="subclass JobListener; for every epoch and checkpoint see register_listener"
            )
        self._job_listeners.append(job_listener)
        return self

    def clear_job_listeners(self) -> StreamExecutionEnvironment:
        """Remove all job listeners."""
        self._job_listeners.clear()
        return self

    # ----------------------------------------------------------------------------------------------------- sources

    def _stream(self, transformation: int) -> DataStream:
        return DataStream(self, (Input(transformation),))

    def from_collection(self, collection: Iterable[T], type_info: TypeInformation | None = None) -> DataStream[T]:
        """Create a stream of the elements of a collection; one subtask reads them.

        Args:
            collection: The elements.
            type_info: The type of the elements. Without it, the type is derived from them.

        """
        elements = list(collection)
        element_type = as_type(type_info) if type_info is not None else _type_of_elements(elements)
        source = CollectionSource(elements, element_type)
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
            raise InvalidArgumentType(msg, hint="build it first: FileSource...build()")
        record_type = as_type(type_info) if type_info is not None else source.type_info()
        spec = SourceSpec(source, watermark_strategy)
        return self._stream(self._program.add(f"Source: {source_name}", spec, record_type, source=source))

    def socket_text_stream(self, host: str, port: int, delimiter: str = "\n", max_retry: int = 0) -> DataStream[str]:
        """Create a stream of text from a server, split at a delimiter.

        The driver receives the text and writes it to a log under the checkpoint directory, so that received text is
        processed exactly once. The stream ends when the server closes the connection.

        Args:
            host: The host of the server.
            port: The port of the server.
            delimiter: Separates the records.
            max_retry: How often a lost connection is opened again; -1 for no limit.

        """
        directory = self._configuration.get(options.CHECKPOINT_DIR)
        if directory is not None and is_uri(directory):
            msg = f"received text cannot be logged in {directory}, which is not a local directory"
            raise InvalidArgument(msg, hint="use a ReceiverSource with a local directory")
        parent = None if directory is None else os.path.join(directory.removeprefix("file://"), "received")
        receiver = SocketTextReceiver(host, port, delimiter, max_retry)
        source = ReceiverSource(receiver, None, Types.STRING(), parent=parent)
        return self.from_source(source, WatermarkStrategy.no_watermarks(), "Socket Stream")

    def add_source(
        self, source_func: Any, source_name: str = "Custom Source", type_info: TypeInformation | None = None
    ) -> DataStream[Any]:
        """Create a stream of the records of a `FlinkKafkaConsumer`. Use `from_source` for sources.

        Args:
            source_func: The consumer, or a source.
            source_name: The name of the operator.
            type_info: The type of the records, if the source does not have one.

        """
        source = source_func.to_source() if hasattr(source_func, "to_source") else source_func
        if not isinstance(source, Source):
            msg = f"{source_func!r} cannot be read: functions of Java and Python are not sources"
            raise InvalidArgumentType(msg, hint="write a Source in Python and pass it to from_source")
        return self.from_source(source, WatermarkStrategy.no_watermarks(), source_name, type_info)

    def create_input(self, input_format: Any, type_info: TypeInformation | None = None) -> DataStream[Any]:
        """Create a stream of the records of an input format, such as `AvroInputFormat`. Subtasks read its splits.

        Args:
            input_format: The input format; its splits are planned now.
            type_info: The type of the records, if it is not that of the input format.

        """
        if not isinstance(input_format, InputFormat):
            msg = f"{input_format!r} is not an input format"
            raise InvalidArgumentType(msg, hint="use from_source, with a FileSource for files")
        record_type = input_format.get_produced_type() if type_info is None else as_type(type_info)
        splits = input_format.create_input_splits(self.get_parallelism())
        stream = self.from_collection(splits, Types.PICKLED_BYTE_ARRAY()).rebalance()
        return stream.flat_map(input_format.read, record_type).name("Input Format")

    # ---------------------------------------------------------------------------------------------------- running

    def _graph(self) -> StreamGraph:
        limit = self.get_max_parallelism()
        steps = tuple(self._with_parallelism(step) for step in self._program.transformations.values())
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
        graph = rewrite_for_mode(graph, mode, combine=self._configuration.get(options.PRE_AGGREGATION))
        return dataclasses.replace(graph, classes=tuple(self._classes))

    def _with_parallelism(self, step: Transformation) -> Transformation:
        """An operator keeps the parallelism that the environment had when the operator was added.

        Operators that were added under the current one have no parallelism of their own, so that a rescale changes
        theirs."""
        before = step.environment_parallelism
        left_open = step.parallelism is None and not step.follows_input
        return dataclasses.replace(step, parallelism=before) if left_open and before != self.get_parallelism() else step

    def _check(self, steps: Sequence[Transformation]) -> None:
        """Raise for operators that the execution config does not allow."""
        config = self.get_config()
        for step in steps:
            if not config.has_auto_generated_uids_enabled() and step.uid is None and step.uid_hash is None:
                msg = (
                    f"operator '{step.name}' has no uid, and generated uids are off ({options.AUTO_GENERATE_UIDS.key})"
                )
                raise UserError(msg, hint="call uid() on it")
            is_untyped = step.sink is None and isinstance(step.output_type, PickledBytesTypeInfo)
            if is_untyped and config.has_generic_types_disabled():
                msg = f"the records of '{step.name}' have no declared type ({options.GENERIC_TYPES.key})"
                raise UserError(msg, hint="set output_type, or annotate the return type of the function")

    def get_execution_plan(self) -> str:
        """Return the plan of the program as JSON, in the form of Flink's plan visualizer."""
        return flink_json(self._graph())

    def execute_async(self, job_name: str = "Flink Streaming Job") -> JobClient:
        """Submit the program without waiting for it; the environment can then be used for another program.

        Args:
            job_name: The name of the job.

        Returns:
            A client of the running job.

        """
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
            self._caches.note_submission(self._program, client)
        finally:
            self._program.clear()
        return client

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Submit the program and wait for its result.

        Ctrl-C cancels the job, or stops it with a savepoint if `millstream.on-interrupt` is `savepoint`.

        Args:
            job_name: The name of the job.

        Returns:
            The result, with the run time and the accumulators of the job.

        Raises:
            MillstreamError: The program is invalid, or the job failed.

        """
        client = self.execute_async(job_name or "Flink Streaming Job")
        try:
            wait_for_end(client)
        except KeyboardInterrupt:
            self._interrupt(client)
            raise
        try:
            result: JobExecutionResult = client.get_job_execution_result().result()
        except Exception as problem:
            failure = problem
            notify_listeners(self._job_listeners, lambda listener: listener.on_job_executed(None, failure))
            raise failure.with_traceback(None) from failure.__cause__  # the frames of the waiting thread say nothing
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
        """Discard the program and the caches of streams."""
        self._program.forget()
        self._caches.invalidate()

    def _repr_html_(self) -> str:
        """Show the plan of the program in a notebook."""
        if not self._program.transformations:
            return html.text(repr(self))
        plan = execution_plan(job_graph(self._graph(), self._configuration.get(options.PIPELINE_NAME) or "program"))
        return html.picture(svg(plan), "the plan of the program")

    def __repr__(self) -> str:
        operators = len(self._program.transformations)
        return f"StreamExecutionEnvironment(parallelism={self.get_parallelism()}, {operators} operators)"


def without_periodic_watermarks(step: Transformation) -> Transformation:
    """Return the transformation without periodic watermarks: only those of single events and of the end of input."""
    if isinstance(step.spec, SourceSpec | TimestampsSpec):
        return dataclasses.replace(step, spec=dataclasses.replace(step.spec, periodic=False))
    return step


def _type_of_elements(elements: list[Any]) -> TypeInformation:
    """Return the type of elements that are all of one dataclass or NamedTuple; else untyped, as in PyFlink."""
    element_classes = set(map(type, elements))
    if len(element_classes) == 1:
        (element_class,) = element_classes
        if hasattr(element_class, "__dataclass_fields__") or (
            issubclass(element_class, tuple) and hasattr(element_class, "_fields")
        ):
            return find_type_of_hint(element_class) or Types.PICKLED_BYTE_ARRAY()
    return Types.PICKLED_BYTE_ARRAY()
