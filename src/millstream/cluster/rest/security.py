"""The protection of the servers of this process: their tokens and their certificate, from options.

Promises: option values that cannot work together are refused before a server starts.
Does not know: requests; `token` checks them."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass

from millstream import options
from millstream.cluster.rest.token import Access, read_or_create_token
from millstream.config.configuration import Configuration
from millstream.errors import UserError


@dataclass(frozen=True)
class Tls:
    """The files of a certificate and of its private key, as PEM."""

    certificate: str
    key: str


@dataclass(frozen=True)
class Security:
    """The tokens that requests must have, and the certificate of the server; None for none."""

    access: Access | None = None
    tls: Tls | None = None


class NoMainToken(UserError):
    """An option needs a token that is not configured."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"{key} is set, but {options.REST_TOKEN_FILE.key} is not",
            hint=f"set {options.REST_TOKEN_FILE.key} to a file; it is created if it does not exist",
        )


class NoCertificate(UserError):
    """TLS is enabled, and its files are not named or cannot be read."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"{options.REST_TLS.key} is set, but {reason}",
            hint=f"set {options.REST_TLS_CERTIFICATE.key} and {options.REST_TLS_KEY.key} to PEM files",
        )


def read_security(configuration: Configuration, new_token: Callable[[], str]) -> Security:
    """Return how servers are protected; files of tokens that do not exist are created.

    Raises:
        NoMainToken: There is a token of readers, or basic authentication, and no other token.
        NoCertificate: TLS is enabled without a certificate and a key that can be read.

    """
    return Security(_read_access(configuration, new_token), _read_tls(configuration))


def _read_access(configuration: Configuration, new_token: Callable[[], str]) -> Access | None:
    path = configuration.get(options.REST_TOKEN_FILE)
    read_only_path = configuration.get(options.REST_READ_ONLY_TOKEN_FILE)
    basic = configuration.get(options.REST_BASIC)
    if path is None:
        if read_only_path is not None:
            raise NoMainToken(options.REST_READ_ONLY_TOKEN_FILE.key)
        if basic:
            raise NoMainToken(options.REST_BASIC.key)
        return None
    read_only = None if read_only_path is None else read_or_create_token(read_only_path, new_token)
    return Access(read_or_create_token(path, new_token), read_only, basic)


def _read_tls(configuration: Configuration) -> Tls | None:
    if not configuration.get(options.REST_TLS):
        return None
    certificate, key = configuration.get(options.REST_TLS_CERTIFICATE), configuration.get(options.REST_TLS_KEY)
    if certificate is None or key is None:
        reason = "the files of the certificate and of its key are not named"
        raise NoCertificate(reason)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=lambda: "")
    except (OSError, ValueError) as problem:  # an error of OpenSSL is an OSError
        reason = f"{certificate} with {key} cannot be used: {problem}"
        raise NoCertificate(reason) from problem
    return Tls(certificate, key)
