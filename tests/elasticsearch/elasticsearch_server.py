"""A real Elasticsearch server, from jars of Maven Central."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from millstream.testing.guarded import build_guarded_command
from millstream.testing.maven import java, retrieve_listed

_RELEASE = "7.17.29"
_LUCENE = ("analyzers-common", "backward-codecs", "core", "grouping", "highlighter", "join", "memory", "misc",
           "queries", "queryparser", "sandbox", "spatial3d", "suggest")  # fmt: skip
_NETTY = ("buffer", "codec", "codec-http", "common", "handler", "resolver", "transport", "transport-native-unix-common")
# Groups, artifacts and releases.
_LIBRARIES = (
    *(("org.elasticsearch", f"elasticsearch{part}", _RELEASE)
      for part in ("", "-cli", "-core", "-geo", "-lz4", "-plugin-classloader", "-secure-sm", "-x-content")),
    *(("org.apache.lucene", f"lucene-{part}", "8.11.3") for part in _LUCENE),
    *(("org.apache.logging.log4j", f"log4j-{part}", "2.17.1") for part in ("api", "core")),
    *(("com.fasterxml.jackson.dataformat", f"jackson-dataformat-{part}", "2.14.2")
      for part in ("cbor", "smile", "yaml")),
    ("com.fasterxml.jackson.core", "jackson-core", "2.14.2"),
    ("com.carrotsearch", "hppc", "0.8.1"), ("com.tdunning", "t-digest", "3.2"), ("joda-time", "joda-time", "2.12.6"),
    ("net.java.dev.jna", "jna", "5.10.0"), ("net.sf.jopt-simple", "jopt-simple", "5.0.2"),
    ("org.hdrhistogram", "HdrHistogram", "2.1.9"), ("org.lz4", "lz4-java", "1.8.0"), ("org.yaml", "snakeyaml", "1.33"),
)  # fmt: skip
_TRANSPORT = (
    ("org.elasticsearch.plugin", "transport-netty4-client", _RELEASE),
    *(("io.netty", f"netty-{part}", "4.1.94.Final") for part in _NETTY),
)
_DESCRIPTOR = f"""\
name=transport-netty4
description=HTTP and transport
version={_RELEASE}
elasticsearch.version={_RELEASE}
java.version=1.8
classname=org.elasticsearch.transport.Netty4Plugin
"""
_POLICY = """\
grant {
  permission java.lang.RuntimePermission "getClassLoader";
  permission java.lang.RuntimePermission "setContextClassLoader";
  permission java.lang.RuntimePermission "accessDeclaredMembers";
  permission java.net.SocketPermission "*", "accept,connect";
  permission java.io.FilePermission "/proc/sys/net/core/somaxconn", "read";
  permission java.util.PropertyPermission "*", "read,write";
};
"""
_LOG4J = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1.} %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
"""
_SETTINGS = """\
discovery.type: single-node
network.host: 127.0.0.1
transport.port: 0
cluster.routing.allocation.disk.threshold_enabled: false
"""
_OPTIONS = ("-Xms256m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
            "-Djava.security.manager=allow", "-Dlog4j2.disable.jmx=true", "-Djava.awt.headless=true",
            # without native methods the server cannot ask for its user, and runs as root, too
            "-Djna.nosys=true", "-Djna.noclasspath=true")  # fmt: skip


class SearchServer:
    """A server on a loopback port, and requests to it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def request(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.loads(response.read() or b"null")

    def answers(self) -> bool:
        try:
            self.request("GET", "")
        except OSError:
            return False
        return True

    def documents(self, index: str) -> dict[str, Any]:
        """The documents of an index by id."""
        self.request("POST", f"{index}/_refresh")
        hits = self.request("GET", f"{index}/_search?size=100")["hits"]["hits"]
        return {hit["_id"]: hit["_source"] for hit in hits}


def fetch_jars() -> Path:
    """Return a directory of the user's cache with the jars of the server in `lib`, those of its transport in `module`;
    they are downloaded if it does not exist."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "millstream"
    cache = root / f"elasticsearch-server-{_RELEASE}"
    if not cache.exists():
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root) as draft:
            for folder, modules in (("lib", _LIBRARIES), ("module", _TRANSPORT)):
                retrieve_listed(f"Elasticsearch {_RELEASE}", modules, Path(draft, "jars", folder))
            with contextlib.suppress(OSError):  # another process was faster
                Path(draft, "jars").rename(cache)
    return cache


def create_home(home: Path, port: int) -> Path:
    """Lay out a server's directories; return that of its jars."""
    jars = fetch_jars()
    for folder in ("modules", "config", "plugins", "logs", "tmp"):
        (home / folder).mkdir()
    module = home / "modules" / "transport-netty4"
    shutil.copytree(jars / "module", module)
    (module / "plugin-descriptor.properties").write_text(_DESCRIPTOR)
    (module / "plugin-security.policy").write_text(_POLICY)
    (home / "config" / "elasticsearch.yml").write_text(f"{_SETTINGS}http.port: {port}\n")
    (home / "config" / "log4j2.properties").write_text(_LOG4J)
    return jars / "lib"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def start_server(home: Path) -> Iterator[SearchServer]:
    """Start a server without users; it stops with the `with` block."""
    port = free_port()
    jars = create_home(home, port)
    server = SearchServer(f"http://127.0.0.1:{port}")
    paths = [f"-Djava.io.tmpdir={home / 'tmp'}", f"-Des.path.home={home}", f"-Des.path.conf={home / 'config'}"]
    command = [java(), *_OPTIONS, *paths, "-cp", f"{jars}/*", "org.elasticsearch.bootstrap.Elasticsearch"]
    log = home / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            build_guarded_command(command),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            cwd=home,
            env={**os.environ, "LIBFFI_TMPDIR": str(home / "tmp")},
        )
    try:
        while not server.answers():
            assert process.poll() is None, log.read_text(errors="replace")[-3000:]
            time.sleep(0.2)
        yield server
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(30)
