"""Translation of the Java client's properties to those of librdkafka.

Promises: a property of the Java client that has another name in librdkafka is translated, including log-ins and stores
of certificates; one that only the Java client supports is refused, and the error names an alternative.
Does not know: which properties librdkafka has; it refuses unknown ones itself."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from millstream.errors import UserError

_log = logging.getLogger("millstream.kafka")

_RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
_NO_EFFECT = {
    "key.deserializer": "bytes are read, and decoded by the deserialization schema",
    "value.deserializer": "bytes are read, and decoded by the deserialization schema",
    "key.serializer": "the serialization schema creates the bytes",
    "value.serializer": "the serialization schema creates the bytes",
    "enable.auto.commit": "offsets are committed with checkpoints",
    "auto.offset.reset": "a sink reads nothing",
    "max.poll.records": "the budget of an epoch limits how much is read",
    "max.block.ms": "the sink waits while the buffer is full",
    "metric.reporters": "the job reports metrics",
}
_JAVA_ONLY = {
    "sasl.client.callback.handler.class": "sasl.username and sasl.password, or sasl.oauthbearer.method = oidc",
    "sasl.login.callback.handler.class": "sasl.username and sasl.password, or sasl.oauthbearer.method = oidc",
    "sasl.login.class": "sasl.username and sasl.password, or sasl.oauthbearer.method = oidc",
    "security.providers": "what OpenSSL provides",
    "ssl.enabled.protocols": "what OpenSSL allows; ssl.cipher.suites can restrict it",
    "ssl.engine.factory.class": "ssl.ca.location, ssl.certificate.location and ssl.key.location",
    "ssl.keymanager.algorithm": "ssl.certificate.location and ssl.key.location",
    "ssl.protocol": "what OpenSSL allows; ssl.cipher.suites can restrict it",
    "ssl.provider": "ssl.engine.location",
    "ssl.secure.random.implementation": "what OpenSSL provides",
    "ssl.trustmanager.algorithm": "ssl.ca.location",
}
_TRUST, _KEYS = "ssl.truststore.", "ssl.keystore."
_STORE_PARTS = ("location", "password", "type")
_JAAS = "sasl.jaas.config"
_JAAS_OPTION = re.compile(r"""([\w.]+)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;"']+)""")
_LOGINS = ("PlainLoginModule", "ScramLoginModule")
_OTHER_LOGINS = {
    "OAuthBearerLoginModule": "set sasl.oauthbearer.method = oidc, sasl.oauthbearer.client.id, "
    "sasl.oauthbearer.client.secret and sasl.oauthbearer.token.endpoint.url",
    "Krb5LoginModule": "set sasl.kerberos.keytab and sasl.kerberos.principal; the client library must have been built "
    "with libsasl2, which that of PyPI is not",
}


class BadKafkaProperty(UserError, ValueError):
    """A property that the client does not know, or whose value it rejects."""

    def __init__(self, name: str, reason: str, *, hint: str | None = None) -> None:
        self.name = name
        super().__init__(
            f"Kafka property '{name}' cannot be used: {reason}",
            hint=hint or "librdkafka's CONFIGURATION page lists names",
        )


def translate_properties(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Translate properties to names of librdkafka; those without effect are removed with a warning."""
    translated: dict[str, Any] = {**_truststore(properties), **_keystore(properties)}
    stores = {store + part for store in (_TRUST, _KEYS) for part in _STORE_PARTS}
    for name, value in properties.items():
        if name in stores:
            continue
        if name in _NO_EFFECT:
            _log.warning("Kafka property '%s' has no effect: %s", name, _NO_EFFECT[name])
        elif name in _JAVA_ONLY:
            raise BadKafkaProperty(name, "only the Java client has it", hint=f"use {_JAVA_ONLY[name]}")
        elif name == _JAAS:
            translated.update(_login(str(value)))
        elif name == "buffer.memory":
            translated["queue.buffering.max.kbytes"] = max(int(value) // 1024, 1)
        elif name == "ssl.endpoint.identification.algorithm":
            translated[name] = value or "none"
        else:
            translated[_RENAMED.get(name, name)] = value
    return translated


def _login(jaas: str) -> dict[str, str]:
    """Return the log-in settings of a line of JAAS configuration."""
    module = (jaas.split() or [""])[0].rpartition(".")[2]
    if module not in _LOGINS:
        hint = _OTHER_LOGINS.get(module, f"there are {' and '.join(_LOGINS)}; or set sasl.username and sasl.password")
        raise BadKafkaProperty(_JAAS, f"'{module}' is a class of Java", hint=hint)
    options = {name: _unquote(text) for name, text in _JAAS_OPTION.findall(jaas)}
    missing = [name for name in ("username", "password") if name not in options]
    if missing:
        hint = f'{module} required username="..." password="...";'
        raise BadKafkaProperty(_JAAS, f"it has no {' and no '.join(missing)}", hint=hint)
    return {"sasl.username": options["username"], "sasl.password": options["password"]}


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text[0] in "\"'" else text


def _truststore(properties: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings of trusted certificates."""
    location, store_type = _store(properties, _TRUST)
    if location is None:
        return {}
    if store_type == "PEM":
        return {"ssl.ca.location": location}
    hint = "set ssl.ca.location to a PEM file: keytool -exportcert -rfc -keystore STORE -alias NAME -file ca.pem"
    raise BadKafkaProperty(name=f"{_TRUST}location", reason="it names a Java key store", hint=hint)


def _keystore(properties: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings of the client's key and certificate."""
    location, store_type = _store(properties, _KEYS)
    if location is None:
        return {}
    if store_type == "PEM":  # one file with both
        return {"ssl.certificate.location": location, "ssl.key.location": location}
    if store_type == "PKCS12":
        return {name: str(properties[name]) for name in (f"{_KEYS}location", f"{_KEYS}password") if name in properties}
    hint = (
        "set ssl.certificate.location and ssl.key.location to PEM files, or make it PKCS12 and set "
        "ssl.keystore.type = PKCS12: keytool -importkeystore -srckeystore STORE -destkeystore keys.p12"
    )
    raise BadKafkaProperty(name=f"{_KEYS}location", reason="it names a Java key store", hint=hint)


def _store(properties: Mapping[str, Any], prefix: str) -> tuple[str | None, str]:
    """Return the path and the type of a key store."""
    location = properties.get(f"{prefix}location")
    suffix = str(location).rpartition(".")[2].lower()
    type_of_suffix = {"pem": "PEM", "p12": "PKCS12", "pfx": "PKCS12"}.get(suffix, "JKS")
    return None if location is None else str(location), str(properties.get(f"{prefix}type", type_of_suffix)).upper()
