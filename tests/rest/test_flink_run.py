"""`flink run`, Flink's own command, with a session cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from flink_cli import VERSION, Command, create_command
from session_cluster import PROGRAM, TOKEN, SessionCluster, start, wait_for

from millstream.cli.cluster_address import TOKEN as TOKEN_VARIABLE
from millstream.testing.maven import retrieve_cached

CLIENT = Path(sys.executable).parent / "millstream-python"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SessionCluster]:
    cluster = start(tmp_path / "local", tmp_path / "shared")
    yield cluster
    cluster.close()


@pytest.fixture
def flink(cluster: SessionCluster, tmp_path: Path) -> Command:
    jars = retrieve_cached(f"flink-python-{VERSION}", ("org.apache.flink", "flink-python", VERSION), alone=True)
    return create_command(
        tmp_path,
        cluster.server.address,
        FLINK_OPT_DIR=str(jars),
        FLINK_REST_CLIENT_HEADERS=f"Authorization:Bearer {TOKEN}",
        PATH=f"{CLIENT.parent}{os.pathsep}{os.environ['PATH']}",
        **{TOKEN_VARIABLE: TOKEN},
    )


def test_a_program_is_submitted_with_the_options_of_the_command_line(
    cluster: SessionCluster, flink: Command, tmp_path: Path
) -> None:
    program = tmp_path / "job.py"
    program.write_text(PROGRAM + "\nassert env.get_config().get_max_parallelism() == 16\n")
    options = ["-Dpipeline.max-parallelism=16", "-pyclientexec", "millstream-python", "-py", str(program)]
    done = flink("run", *options, "2", "10", "from flink")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "(from flink)" in done.stdout
    assert "FINISHED" in done.stdout
    wait_for(lambda: cluster.jobs()["from flink"].state == "FINISHED")

    program.write_text("raise ValueError('of the program')")
    failed = flink("run", "-d", *options)
    assert failed.returncode != 0
    assert "ValueError: of the program" in failed.stdout + failed.stderr


JAVA_GRAPH = """
import os
from py4j.java_gateway import GatewayParameters, JavaGateway

jvm = JavaGateway(gateway_parameters=GatewayParameters(port=int(os.environ["PYFLINK_GATEWAY_PORT"]))).jvm
env = jvm.org.apache.flink.streaming.api.environment.StreamExecutionEnvironment.getExecutionEnvironment()
getattr(env.fromSequence(1, 10), "print")()
env.execute("a graph of Java objects")
"""


def test_a_graph_of_java_objects_is_refused_with_a_sentence(
    cluster: SessionCluster, flink: Command, tmp_path: Path
) -> None:
    """PyFlink creates such a graph in the JVM of the command, as this program does."""
    program = tmp_path / "graph.py"
    program.write_text(JAVA_GRAPH)
    refused = flink("run", "-d", "-pyclientexec", sys.executable, "-py", str(program))
    assert refused.returncode != 0
    assert "a job graph of Flink's Java client cannot run here" in refused.stdout + refused.stderr
    assert cluster.jobs() == {}
