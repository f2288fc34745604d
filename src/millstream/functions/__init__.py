"""Functions that users subclass, and their contexts."""

from millstream.functions.adapt import CallableFunction, WrongFunctionType, as_function
from millstream.functions.async_io import (
    NO_RETRY_STRATEGY,
    AsyncFunction,
    AsyncRetryPredicate,
    AsyncRetryStrategy,
    ExponentialBackoffDelayRetryStrategy,
    FixedDelayRetryStrategy,
    InvalidRetryStrategy,
    NoRetryStrategy,
    RetryPredicate,
)
from millstream.functions.base import DistributedCache, Function, KeyedStateStore, RuntimeContext
from millstream.functions.broadcast import (
    BaseBroadcastProcessFunction,
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
)
from millstream.functions.checkpointed import (
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    OperatorStateStore,
)
from millstream.functions.delta import DeltaFunction
from millstream.functions.elements import (
    AggregateFunction,
    CoFlatMapFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
    NoPythonFunction,
    NullByteKeySelector,
    Partitioner,
    ReduceFunction,
    SinkFunction,
    SourceFunction,
)
from millstream.functions.iteration import IterationContext, IterationListener
from millstream.functions.join import CoGroupFunction, FlatJoinFunction, JoinFunction, ProcessJoinFunction, TaggedUnion
from millstream.functions.parameters import ParameterFunction, WorkerContext
from millstream.functions.process import (
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)
from millstream.functions.window import (
    AllWindowFunction,
    PassThroughAllWindowFunction,
    PassThroughWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)

__all__ = [
    "NO_RETRY_STRATEGY",
    "AggregateFunction",
    "AllWindowFunction",
    "AsyncFunction",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "BaseBroadcastProcessFunction",
    "BroadcastProcessFunction",
    "CallableFunction",
    "CheckpointedFunction",
    "CoFlatMapFunction",
    "CoGroupFunction",
    "CoMapFunction",
    "CoProcessFunction",
    "DeltaFunction",
    "DistributedCache",
    "ExponentialBackoffDelayRetryStrategy",
    "FilterFunction",
    "FixedDelayRetryStrategy",
    "FlatJoinFunction",
    "FlatMapFunction",
    "Function",
    "FunctionInitializationContext",
    "FunctionSnapshotContext",
    "InvalidRetryStrategy",
    "IterationContext",
    "IterationListener",
    "JoinFunction",
    "KeySelector",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStateStore",
    "MapFunction",
    "NoPythonFunction",
    "NoRetryStrategy",
    "NullByteKeySelector",
    "OperatorStateStore",
    "ParameterFunction",
    "Partitioner",
    "PassThroughAllWindowFunction",
    "PassThroughWindowFunction",
    "ProcessAllWindowFunction",
    "ProcessFunction",
    "ProcessJoinFunction",
    "ProcessWindowFunction",
    "ReduceFunction",
    "RetryPredicate",
    "RuntimeContext",
    "SinkFunction",
    "SourceFunction",
    "TaggedUnion",
    "WindowFunction",
    "WorkerContext",
    "WrongFunctionType",
    "as_function",
]
