"""Runs a session cluster in this process, until it is shut down.

Promises: with high availability, one of several such processes leads, and the others stand by; the one that takes over
finds all programs in the store and starts them again. A Spark that is lost is replaced, and the programs start again.
When this process ends for any reason, the processes of the programs end, too.
Does not know: the command line, how Spark starts."""

from __future__ import annotations

import hashlib
import logging
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from millstream import options
from millstream.cluster import entrypoint
from millstream.cluster.leadership import Leadership, NotLeading
from millstream.cluster.session.driver import SessionDriver
from millstream.cluster.session.store import ProgramStore
from millstream.config.configuration import Configuration
from millstream.errors import UserError
from millstream.files.locations import join_path

_log = logging.getLogger("millstream.session")

_CHECK_SECONDS = 1.0
_OWN_PREFIXES = (
    "rest.",
    "millstream.rest.",
    "security.ssl.",
    "jobmanager.archive.",
)  # the prefixes of options of the cluster, which its programs do not get


def run_session(configuration: Configuration, on_start: Callable[[str, SessionDriver], None]) -> None:
    """Run a session cluster; `on_start` is called with the URL of its REST server and with its driver when it accepts
    programs."""
    entrypoint.check_options(configuration)
    directory = Path(tempfile.mkdtemp(prefix="millstream-session-"))
    leadership, root = _election(configuration)
    if leadership is not None:
        leadership.wait(lambda: False)
    spark = entrypoint.create_spark_host(configuration)
    spark.ensure()
    settings = configuration.to_dict()
    driver = SessionDriver(
        ProgramStore(root or str(directory / "store")),
        directory,
        slots=spark.slots(),
        settings={key: value for key, value in settings.items() if not key.startswith(_OWN_PREFIXES)},
        variables=spark.ensure,
        clock=entrypoint.SystemClock(),
        new_id=entrypoint.new_id,
        new_token=entrypoint.new_token,
        recovers=leadership is not None,
        archive_directory=configuration.get(options.ARCHIVE_DIR),
        upload_limit=configuration.get(options.REST_MAX_UPLOAD),
    )
    try:
        driver.recover()
        ports = configuration.get(options.REST_BIND_PORT) or str(configuration.get(options.REST_PORT))
        security = entrypoint.read_security(configuration)
        address = configuration.get(options.REST_BIND_ADDRESS)
        on_start(entrypoint.start_server(address, ports, security, driver, configuration), driver)
        while not driver.is_shut_down.wait(_CHECK_SECONDS):
            if leadership is not None:
                leadership.report_progress()
                leadership.verify()
            if (problem := spark.find_problem()) is not None:
                spark.ensure()
                driver.restart_programs(str(problem))
    except NotLeading as lost:
        _log.error("%s", lost)
        raise
    finally:
        driver.is_shut_down.set()
        driver.close()
        if leadership is not None:
            leadership.close()
        spark.stop()
        shutil.rmtree(directory, ignore_errors=True)


def _election(configuration: Configuration) -> tuple[Leadership | None, str | None]:
    """Return how a leader is found, and the directory of the store; None without high availability."""
    if configuration.get(options.HA_TYPE) == "NONE":
        return None, None
    directory = configuration.get(options.HA_STORAGE_DIR)
    if directory is None:
        msg = f"{options.HA_TYPE.key} is set, but {options.HA_STORAGE_DIR.key} is not"
        raise UserError(msg, hint="set it to a directory that every driver of the cluster can access")
    cluster = hashlib.blake2b(configuration.get(options.HA_CLUSTER_ID).encode(), digest_size=8).hexdigest()
    lease = entrypoint.create_lease(directory, f"session-{cluster}")
    duration = configuration.get(options.HA_LEASE_DURATION).to_milliseconds() / 1000
    leadership = Leadership(lease, entrypoint.holder_name(), duration, time.monotonic, time.sleep)
    return leadership, join_path(directory, f"session-{cluster}")
