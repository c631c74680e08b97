"""Object stores by their URLs, and what goes wrong with them.

Credentials come from where the store's own tools have them (docs/object-storage.md). They stay in obstore: nothing here
keeps, shows or writes one.
"""

from __future__ import annotations

import configparser
import errno
import json
import os
import re
import threading
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jitdb.common.forking import begins_anew, fork_safe
from jitdb.errors import InvalidArgument, library
from jitdb.log.objects.urls import ObjectUrl

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_PATIENCE: Final = timedelta(seconds=60)  # in which a request is tried again
_CLIENT: Final = {
    "connect_timeout": "5s",
    "read_timeout": "30s",  # without a byte
    "timeout": "600s",  # of a whole request, which may be slow
}
_RETRY: Final = {"max_retries": 8, "retry_timeout": _PATIENCE}
_KEYS: Final = ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_SKIP_SIGNATURE")
_CONTAINER: Final = ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI")
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_OF_PROFILES: Final = {  # what obstore calls what is in them
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
}
_QUERY: Final = re.compile(r"\?[^\s\"'<>]+")  # of a URL in a message: it may hold a signature
_CODE: Final = re.compile(r"<Code>([^<]{1,80})</Code>")
_ODD_NAME: Final = re.compile(r"(?:invalid path|parse path): .*?Path \"(.*?)\"", re.DOTALL)
_STATUS: Final = re.compile(r"status code: (\d{3})")


class ObjectError(OSError):
    """A store does not give what was asked for."""


class ObjectChanged(ObjectError):
    """An object is another one than when it was looked at."""


class _Stores:
    """The stores in use, by the URLs of their roots."""

    def __init__(self) -> None:
        self._lock = fork_safe(threading.Lock())
        self._held: dict[str, ObjectStore] = {}
        begins_anew(self)

    def begin_anew(self) -> None:
        """See forking.BeginsAnew: a child has none of the threads that serve its parent's."""
        self._held = {}

    def of(self, root: str) -> ObjectStore:
        with self._lock:
            if root not in self._held:
                self._held[root] = _opened(root)
            return self._held[root]


_STORES: Final = _Stores()


def store_of(url: ObjectUrl) -> ObjectStore:
    """The store in which it lies. Raises MissingLibrary, InvalidArgument."""
    return _STORES.of(url.root)


def _opened(root: str) -> ObjectStore:
    stores = library("obstore.store")
    given: dict[str, Any] = {"client_options": dict(_CLIENT), "retry_config": dict(_RETRY)}
    if root.startswith("http://"):
        given["client_options"]["allow_http"] = True
    if root.startswith("s3://"):
        given |= _aws(given)
    if root.startswith("gs://") and (emulator := os.environ.get("STORAGE_EMULATOR_HOST")):
        given |= {"service_account_key": _of_emulator(emulator)}
        given["client_options"]["allow_http"] = True
    try:
        return stores.from_url(root, **given)
    except Exception as error:
        raise InvalidArgument(f"{root}: {said_of(error)}", remedy="see docs/object-storage.md") from None


def _aws(given: dict[str, Any]) -> dict[str, Any]:
    """What obstore does not find itself: keys and region of a profile, an endpoint as AWS's own tools are told it."""
    found: dict[str, Any] = {}
    profile = _profile()
    endpoint = next(filter(None, map(os.environ.get, _ENDPOINTS)), profile.get("endpoint_url"))
    if endpoint:
        found["endpoint"] = endpoint
        if endpoint.startswith("http://"):
            given["client_options"]["allow_http"] = True
    if not any(map(os.environ.get, ("AWS_REGION", "AWS_DEFAULT_REGION"))) and profile.get("region"):
        found["region"] = profile["region"]
    if any(map(os.environ.get, (*_KEYS, *_CONTAINER))) and "AWS_PROFILE" not in os.environ:
        return found
    if "aws_access_key_id" in profile and "aws_secret_access_key" in profile:
        found |= {name: profile[key] for key, name in _OF_PROFILES.items() if profile.get(key)}
    elif profile or "AWS_PROFILE" in os.environ:  # single sign-on, a role, a program that gives keys
        found["credential_provider"] = _of_boto3()
    return found


def _of_emulator(endpoint: str) -> str:
    """The account with which obstore asks another server than Google's, as Google's own tools are told it."""
    url = endpoint if "://" in endpoint else f"http://{endpoint}"
    names = dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
    return json.dumps({**names, "gcs_base_url": url.rstrip("/"), "disable_oauth": True})


def _of_boto3() -> Any:
    library("boto3")
    try:
        return library("obstore.auth.boto3").Boto3CredentialProvider()
    except Exception as error:
        raise InvalidArgument(
            f"the profile {os.environ.get('AWS_PROFILE', 'default')} of AWS gives no credentials: {said_of(error)}",
            remedy="aws sts get-caller-identity shows why",
        ) from None


def _profile() -> dict[str, str]:
    """What the files of AWS's tools say of the profile in use."""
    name = os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE") or "default"
    home = Path.home() / ".aws"
    files = (
        ("AWS_CONFIG_FILE", "config", "default" if name == "default" else f"profile {name}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials", name),
    )
    found: dict[str, str] = {}
    for variable, file, section in files:
        parser, path = configparser.RawConfigParser(), os.environ.get(variable) or home / file
        try:
            parser.read(path)
        except (configparser.Error, UnicodeDecodeError):
            raise InvalidArgument("it is no file of profiles, as AWS's tools write it", path=path) from None
        if parser.has_section(section):
            found |= dict(parser.items(section))
    return found


def changed(url: str) -> ObjectChanged:
    return ObjectChanged(errno.ESTALE, "it was replaced by another object since it was looked at", url)


def said_of(error: BaseException) -> str:
    """What an error of the store says, on one line, without signatures."""
    text = str(error).split("\n\nDebug source")[0]
    code = _CODE.search(text)
    first = _QUERY.sub("?…", text.split(": <?xml")[0].split("\n")[0]).strip()
    return f"{first} ({code[1]})" if code else first


def as_os_error(error: BaseException, url: str) -> OSError:
    """An error of obstore's as one of files."""
    exceptions = library("obstore.exceptions")
    text = str(error)
    code, status = _CODE.search(text), _STATUS.search(text)
    if code is not None and code[1] in ("NoSuchBucket", "ContainerNotFound"):
        return ObjectError(errno.ENOENT, "there is no such bucket", url)
    if (odd := _ODD_NAME.search(text)) is not None:
        said = f"an object has a name that cannot be asked for ({odd[1]!r}: an empty part, `.`, `..` or a control"
        return ObjectError(errno.EINVAL, f"{said} character): rename it, or name others by more of their names", url)
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(errno.ENOENT, "there is no such object", url)
    if isinstance(error, exceptions.PreconditionError):
        return changed(url)
    refused = (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError)
    if isinstance(error, refused) or (status is not None and status[1] in ("401", "403")):
        why = f" ({code[1]})" if code is not None else ""
        return PermissionError(
            errno.EACCES, f"the store refuses to show it{why}: see docs/object-storage.md for credentials", url
        )
    return ObjectError(errno.EIO, said_of(error), url)
