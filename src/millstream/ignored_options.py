"""Keys of Flink's options that have no meaning here and that no code reads.

Promises: a program that sets one of them runs, and the reason is in the warning.
Does not know: the options that are read, and those ignored options that have a constant: see `options`."""

from __future__ import annotations

#: Keys by the reason why they have no meaning here.
IGNORED: dict[str, str] = {
    "no Java code is loaded": """pipeline.force-kryo-avro
        pipeline.serialization-config python.client.executable""",
    "an epoch sends what it has when it ends": """execution.buffer-timeout.enabled""",
    "an epoch ends with nothing in flight, so that a checkpoint has nothing to align": """
        execution.checkpointing.unaligned.interruptible-timers.enabled
        execution.checkpointing.unaligned.max-subtasks-per-channel-state-file
        execution.checkpointing.unaligned.recover-output-on-downstream.enabled
        execution.checkpointing.during-recovery.enabled
        execution.state-recovery.without-channel-state.checkpoint-id pipeline.sources.pause-until-first-checkpoint
        execution.checkpointing.checkpoints-after-tasks-finish
        execution.checkpointing.checkpoints-after-tasks-finish.enabled""",
    "checkpoint files are laid out in one way": """execution.checkpointing.cleaner.parallel-mode
        execution.checkpointing.data-inline-threshold execution.checkpointing.write-buffer-size
        execution.checkpointing.file-merging.across-checkpoint-boundary
        execution.checkpointing.file-merging.max-file-size execution.checkpointing.file-merging.pool-blocking
        execution.checkpointing.file-merging.max-subtasks-per-file
        execution.checkpointing.file-merging.max-space-amplification""",
    "local state is found again by its version": """execution.checkpointing.local-backup.enabled
        execution.checkpointing.local-backup.dirs execution.state-recovery.from-local state.backend.local-recovery
        execution.state-recovery.approximate-local-recovery""",
    "functions run inside the task and need no bundles, bridges or caches of their own": """python.execution-mode
        python.fn-execution.bundle.size python.fn-execution.bundle.time python.fn-execution.arrow.batch.size
        python.fn-execution.memory.managed python.metric.enabled python.profile.enabled python.systemenv.enabled
        python.operator-chaining.enabled python.pythonpath python.state.cache-size python.map-state.read-cache-size
        python.map-state.write-cache-size python.map-state.iterate-response-batch-size python.logging.default.level
        python.logging.level.overrides python.job-options python.loopback-server.address""",
    "Spark sorts, schedules and places batch work": """execution.batch-shuffle-mode execution.sort-partition.memory
        execution.sort-keyed-partition.memory execution.sorted-inputs.enabled execution.sorted-inputs.memory
        execution.batch-state-backend.enabled execution.async-state.total-buffer-size
        execution.async-state.active-buffer-size execution.async-state.active-buffer-timeout
        pipeline.jobvertex-parallelism-overrides""",
    "the program is the cluster": """execution.target execution.attached execution.shutdown-on-attached-exit
        execution.job-listeners execution.job-status-changed-listeners execution.shutdown-on-application-finish
        execution.submit-failed-job-on-application-error execution.program-config.wildcards
        execution.program-config.enabled execution.allow-client-job-configurations
        execution.terminate-application-on-any-job-terminated-exceptionally""",
    "vertices are named and chained in one way": """pipeline.vertex-description-mode
        pipeline.vertex-name-include-index-prefix
        pipeline.watermark-alignment.allow-unaligned-source-splits pipeline.watermark-alignment.buffer-size""",
}

#: Namespaces of Flink whose options are the business of Spark, or of parts that do not exist here.
IGNORED_PREFIXES = (
    *("python.internal.", "execution.batch.", "state.changelog.", "state.backend.changelog.", "state.latency-track."),
    *("state.size-track.", "state.backend.latency-track.", "state.backend.rocksdb.", "state.backend.forst."),
    *("blob.", "classloader.", "client.", "cluster.", "compiler.", "completed-application-store.", "env.", "events."),
    *("external-resource.", "fs.", "heartbeat.", "high-availability.", "historyserver.", "jobmanager.", "jobstore."),
    *("kubernetes.", "minicluster.", "netty.", "pekko.", "plugin.", "process.", "queryable-state.", "resourcemanager."),
    *("slot.", "slotmanager.", "slow-task-detector.", "task.", "taskmanager.", "traces.", "web.", "yarn."),
    *("zookeeper.", "s3.", "s3a.", "hadoop."),
)
