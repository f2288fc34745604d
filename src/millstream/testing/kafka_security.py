"""Listeners of a test broker with SASL, TLS, or both.

Promises: the certificates are created for this broker, are valid for 127.0.0.1 and are in its directory; `connection`
returns the properties of a client with the names of Kafka's Java client, with certificates as PEM files.
Does not know: the broker's process; millstream's connector."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from millstream.errors import UserError

PROTOCOLS = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_MODULES = "org.apache.kafka.common.security"


class NoCertificates(UserError):
    """Certificates could not be created."""

    hint = "install openssl"

    def __init__(self, why: str) -> None:
        super().__init__(f"the certificates of a test broker could not be created: {why}")


class SecureListeners:
    """One listener for each of `PROTOCOLS`, on these ports, for users with their passwords.

    The listener SSL requires a certificate of the client."""

    def __init__(self, directory: Path, ports: Sequence[int], users: Mapping[str, str]) -> None:
        self._directory, self._users = directory, dict(users)
        self._ports = dict(zip(PROTOCOLS, ports, strict=True))

    def make_certificates(self) -> None:
        """Create a key and a certificate for the broker and for a client.

        `server.pem` and `client.pem` hold both; files `.key` and `.crt` hold one of them."""
        for name in ("server", "client"):
            key, certificate = self._get_path(f"{name}.key"), self._get_path(f"{name}.crt")
            names = ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
            key_options = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "36500"]
            _run_openssl("req", "-x509", *key_options, *names, "-keyout", str(key), "-out", str(certificate))
            self._get_path(f"{name}.pem").write_bytes(key.read_bytes() + certificate.read_bytes())

    def server_properties(self) -> str:
        """Return the lines of server.properties beside the list of listeners."""
        lines: list[str] = []
        plain = " ".join(f'user_{name}="{password}"' for name, password in self._users.items())
        for listener in ("listener.name.sasl_plaintext", "listener.name.sasl_ssl"):
            lines.append(f"{listener}.sasl.enabled.mechanisms={','.join(_MECHANISMS)}")
            for mechanism in _MECHANISMS:
                login = f"{_choose_login_module(mechanism)} required {plain if mechanism == 'PLAIN' else ''};"
                lines.append(f"{listener}.{mechanism.lower()}.sasl.jaas.config={login}")
        lines += ["ssl.keystore.type=PEM", f"ssl.keystore.location={self._get_path('server.pem')}"]
        lines += ["ssl.truststore.type=PEM", f"ssl.truststore.location={self._get_path('client.crt')}"]
        lines.append("listener.name.ssl.ssl.client.auth=required")
        return "\n".join(lines) + "\n"

    def listeners(self) -> str:
        """Return the list of listeners for server.properties."""
        return ",".join(f"{protocol}://127.0.0.1:{port}" for protocol, port in self._ports.items())

    def format_arguments(self) -> list[str]:
        """Return the arguments that store the users for SCRAM when the broker's storage is formatted."""
        arguments: list[str] = []
        for name, password in self._users.items():
            for mechanism in _MECHANISMS[1:]:
                arguments += ["--add-scram", f"{mechanism}=[name={name},password={password}]"]
        return arguments

    def connection(self, protocol: str, mechanism: str, user: str | None) -> dict[str, str]:
        """Return the properties of a client; of the first user by default."""
        properties = {"bootstrap.servers": f"127.0.0.1:{self._ports[protocol]}", "security.protocol": protocol}
        if protocol.endswith("SSL"):
            properties |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self._get_path("server.crt"))}
        if protocol == "SSL":
            return properties | {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self._get_path("client.pem"))}
        name = user or next(iter(self._users))
        login = f'{_choose_login_module(mechanism)} required username="{name}" password="{self._users[name]}";'
        return properties | {"sasl.mechanism": mechanism, "sasl.jaas.config": login}

    def _get_path(self, name: str) -> Path:
        return self._directory / name


def _choose_login_module(mechanism: str) -> str:
    return f"{_MODULES}.plain.PlainLoginModule" if mechanism == "PLAIN" else f"{_MODULES}.scram.ScramLoginModule"


def _run_openssl(*arguments: str) -> None:
    program = shutil.which("openssl")
    if program is None:
        raise NoCertificates(why="openssl is not on PATH")
    process = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, check=False)
    if process.returncode != 0:
        raise NoCertificates(why=" / ".join(process.stderr.splitlines()[-3:]))
