"""Keys of Flink's options that have no effect in millstream and that no code reads.

Promises: a program that sets one of them runs; a warning says why the option has no effect.
Does not know: the options that are read, and ignored options that have a constant; see `options`."""

from __future__ import annotations

#: Keys by the reason why they have no effect.
IGNORED: dict[str, str] = {
    "no Java code is loaded": """pipeline.force-kryo-avro
        pipeline.serialization-config python.client.executable""",
    "event time is used where a watermark strategy or a time attribute is declared": """
        pipeline.time-characteristic""",
    "an epoch flushes all buffers when it ends": """execution.buffer-timeout.enabled""",
    "no records are in flight between two epochs, so there is nothing to align": """
        execution.checkpointing.unaligned.interruptible-timers.enabled
        execution.checkpointing.unaligned.max-subtasks-per-channel-state-file
        execution.checkpointing.unaligned.recover-output-on-downstream.enabled
        execution.checkpointing.during-recovery.enabled
        execution.state-recovery.without-channel-state.checkpoint-id pipeline.sources.pause-until-first-checkpoint
        execution.checkpointing.checkpoints-after-tasks-finish
        execution.checkpointing.checkpoints-after-tasks-finish.enabled""",
    "the layout of checkpoint files is fixed": """execution.checkpointing.cleaner.parallel-mode
        execution.checkpointing.data-inline-threshold execution.checkpointing.write-buffer-size
        execution.checkpointing.file-merging.across-checkpoint-boundary
        execution.checkpointing.file-merging.max-file-size execution.checkpointing.file-merging.pool-blocking
        execution.checkpointing.file-merging.max-subtasks-per-file
        execution.checkpointing.file-merging.max-space-amplification""",
    "local state is always reused if its version fits": """execution.checkpointing.local-backup.enabled
        execution.checkpointing.local-backup.dirs execution.state-recovery.from-local state.backend.local-recovery
        execution.state-recovery.approximate-local-recovery""",
    "Python functions run inside of the task, without bundles, bridges and caches": """
        python.execution-mode
        python.fn-execution.bundle.size python.fn-execution.bundle.time python.fn-execution.arrow.batch.size
        python.fn-execution.memory.managed python.metric.enabled python.profile.enabled python.systemenv.enabled
        python.operator-chaining.enabled python.pythonpath python.state.cache-size python.map-state.read-cache-size
        python.map-state.write-cache-size python.map-state.iterate-response-batch-size python.logging.default.level
        python.logging.level.overrides python.job-options python.loopback-server.address""",
    "Spark sorts, schedules and distributes the work of batch jobs": """
        execution.batch-shuffle-mode execution.sort-partition.memory
        execution.sort-keyed-partition.memory execution.sorted-inputs.enabled execution.sorted-inputs.memory
        execution.batch-state-backend.enabled execution.async-state.total-buffer-size
        execution.async-state.active-buffer-size execution.async-state.active-buffer-timeout
        pipeline.jobvertex-parallelism-overrides""",
    "the job runs in the process of its program": """
        execution.target execution.attached execution.shutdown-on-attached-exit
        execution.job-listeners execution.job-status-changed-listeners execution.shutdown-on-application-finish
        execution.submit-failed-job-on-application-error execution.program-config.wildcards
        execution.program-config.enabled execution.allow-client-job-configurations
        execution.terminate-application-on-any-job-terminated-exceptionally""",
    "names and chaining of vertices follow fixed rules": """pipeline.vertex-description-mode
        pipeline.vertex-name-include-index-prefix
        pipeline.watermark-alignment.allow-unaligned-source-splits pipeline.watermark-alignment.buffer-size""",
}

#: Namespaces of Flink whose options are a matter of Spark, or of components that do not exist here.
IGNORED_PREFIXES = (
    *("python.internal.", "execution.batch.", "state.changelog.", "state.backend.changelog.", "state.latency-track."),
    *("state.size-track.", "state.backend.latency-track.", "state.backend.rocksdb.", "state.backend.forst."),
    *("blob.", "classloader.", "client.", "cluster.", "compiler.", "completed-application-store.", "env.", "events."),
    *("external-resource.", "fs.", "heartbeat.", "high-availability.", "historyserver.", "jobmanager.", "jobstore."),
    *("kubernetes.", "minicluster.", "netty.", "pekko.", "plugin.", "process.", "queryable-state.", "resourcemanager."),
    *("slot.", "slotmanager.", "slow-task-detector.", "task.", "taskmanager.", "traces.", "web.", "yarn."),
    *("zookeeper.", "s3.", "s3a.", "hadoop."),
)
