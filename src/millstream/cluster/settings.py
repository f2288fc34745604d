"""The options of a job that the control plane reads, as one value.

Promises: each of these options is read and checked here, once.
Does not know: programs."""

from __future__ import annotations

from dataclasses import dataclass

from millstream import options
from millstream.cluster.restarts import RestartStrategy, restart_strategy
from millstream.config.configuration import Configuration
from millstream.errors import UserError
from millstream.times import millis

MOST_COMMIT_GRACE = 10_000


@dataclass(frozen=True)
class JobSettings:
    """Times are milliseconds. `checkpoint_interval` is None when checkpoints are off; `commit_grace` is the time that a
    commit under way gets when the job is cancelled."""

    restart: RestartStrategy
    checkpoint_interval: int | None = None
    checkpoint_timeout: int = 600_000
    commit_timeout: int = 600_000
    min_pause: int = 0
    retained: int = 3
    tolerable_failures: int = 0
    retain_on_cancel: bool = False
    recovery_path: str | None = None
    allow_unclaimed: bool = False
    claim: bool = False
    allow_older: bool = False
    savepoint_dir: str | None = None
    epoch_target: int = 1_000
    epoch_records: int | None = None
    epoch_bytes: int = 256 << 20
    min_interval: int = 0
    idle_interval: int = 20
    deadline: int = 600_000
    cancellation: int = 180_000
    commit_grace: int = 10_000
    adaptive: bool = False
    reactive: bool = False
    stable_for: int = 60_000
    rest: int = 30_000


def job_settings(configuration: Configuration) -> JobSettings:
    """Read the settings from a configuration."""
    get = configuration.get
    interval = get(options.CHECKPOINT_INTERVAL)
    interval_millis = millis(interval) if interval is not None else 0
    if interval_millis < 0:
        msg = f"the checkpoint interval is {interval_millis} ms"
        raise UserError(msg, hint="set execution.checkpointing.interval above 0")
    retained = get(options.CHECKPOINTS_RETAINED)
    if retained < 1:
        msg = f"{options.CHECKPOINTS_RETAINED.key} is {retained}"
        raise UserError(msg, hint="keep at least one checkpoint")
    return JobSettings(
        restart=restart_strategy(configuration, checkpointing=interval_millis > 0),
        checkpoint_interval=interval_millis or None,
        checkpoint_timeout=millis(get(options.CHECKPOINT_TIMEOUT)),
        commit_timeout=millis(get(options.CHECKPOINT_TIMEOUT)),
        min_pause=millis(get(options.CHECKPOINT_MIN_PAUSE)),
        retained=retained,
        tolerable_failures=get(options.TOLERABLE_FAILED_CHECKPOINTS),
        retain_on_cancel=str(get(options.CHECKPOINT_RETENTION)).upper() == "RETAIN_ON_CANCELLATION",
        recovery_path=get(options.RECOVERY_PATH),
        allow_unclaimed=get(options.RECOVERY_IGNORE_UNCLAIMED),
        claim=str(get(options.RECOVERY_CLAIM_MODE)).upper() == "CLAIM",
        allow_older=get(options.RECOVERY_ALLOW_OLDER),
        savepoint_dir=get(options.SAVEPOINT_DIR),
        epoch_target=millis(get(options.EPOCH_TARGET_DURATION)),
        epoch_records=get(options.EPOCH_MAX_RECORDS),
        epoch_bytes=int(get(options.EPOCH_MAX_BYTES)),
        min_interval=millis(get(options.EPOCH_MIN_INTERVAL)),
        idle_interval=millis(get(options.EPOCH_IDLE_INTERVAL)),
        deadline=millis(get(options.EPOCH_DEADLINE)),
        cancellation=(cancellation := millis(get(options.TASK_CANCELLATION_TIMEOUT))),
        commit_grace=min(cancellation or MOST_COMMIT_GRACE, MOST_COMMIT_GRACE),
        adaptive=get(options.SCHEDULER) == "Adaptive" or get(options.SCHEDULER_MODE) == "REACTIVE",
        reactive=get(options.SCHEDULER_MODE) == "REACTIVE",
        stable_for=millis(get(options.ADAPTIVE_STABILIZATION)),
        rest=millis(get(options.ADAPTIVE_COOLDOWN)),
    )
