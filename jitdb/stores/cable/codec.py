"""The codec "cable": posts as questions see them.

    {"hash": b"…", "public_key": b"…", "signature": b"…", "links": [b"…"], "post_type": 0, "timestamp": 1700000000000,
     "channel": "default", "text": "hello"}

and in the place of the last line what else a post's type has: "topic", "hashes", or "info", {"name": "ada"}. The hash
stands in no record: it is what the record is named by.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from jitdb.common.paths import Keys
from jitdb.common.words import shown, type_and_size
from jitdb.errors import EncodeError
from jitdb.log.codecs import Codec
from jitdb.log.codecs.base import Buffer
from jitdb.stores.cable.order import Known
from jitdb.stores.cable.post import FIELDS, Post, decode_post, encode_post, hash_of, value_of

if TYPE_CHECKING:
    from jitdb.log.codecs.fields.located import Locator

_HEAD: Final = ("public_key", "signature", "links", "post_type", "timestamp")


class CableCodec(Codec):
    """Posts.

    >>> codec = CableCodec()
    >>> post = {"public_key": bytes(32), "signature": bytes(64), "links": [], "post_type": 4, "timestamp": 1}
    >>> codec.decode(codec.encode({**post, "channel": "default"}))["channel"]
    'default'
    """

    name: ClassVar[str] = "cable"

    def encode(self, value: Any) -> bytes:
        """The record that `decode` makes this of, or that of a Post. Raises EncodeError."""
        if isinstance(value, Known):
            return value.raw
        if isinstance(value, Post):
            return encode_post(value)
        if not isinstance(value, dict):
            raise EncodeError(f"a post is a dict, not {type_and_size(value)}")
        record = encode_post(post_of(value))
        if "hash" in value and value["hash"] != hash_of(record):
            raise EncodeError(f"hash: that of the post is {hash_of(record).hex()}, not {shown(value['hash'])}")
        return record

    def decode(self, record: Buffer) -> dict[str, Any]:
        record = bytes(record)
        return {"hash": hash_of(record), **values_of(decode_post(record))}

    def looks_like(self, records: Sequence[bytes]) -> bool:
        """Posts, to the last byte."""
        return bool(records) and all(map(self.is_valid, records))

    def locator(self, paths: Sequence[Keys]) -> Locator:
        from jitdb.stores.cable.post_locator import PostLocator  # with numpy

        return PostLocator(self, paths)


def values_of(post: Post) -> dict[str, Any]:
    """A post as questions see it, but for its hash."""
    found: dict[str, Any] = {name: getattr(post, name) for name in (*_HEAD, *FIELDS[post.post_type])}
    for name in ("links", "hashes"):
        if name in found:
            found[name] = list(found[name])
    if "info" in found:
        found["info"] = info_of(post)
    return found


def info_of(post: Post) -> dict[str, str | int | bytes]:
    """What an information says, each as what it means. Of a key that is there twice, the last one counts."""
    return {key: value_of(key, raw) for key, raw in post.info}


def post_of(value: dict[str, Any]) -> Post:
    """The post that is seen so. Raises EncodeError, which names the field."""
    post_type = value.get("post_type")
    if not isinstance(post_type, int) or post_type not in FIELDS:
        raise EncodeError(f"post_type: 0 to {max(FIELDS)}, not {shown(post_type)}")
    wanted = (*_HEAD, *FIELDS[post_type])
    for name in value:
        if name != "hash" and name not in wanted:
            raise EncodeError(f"a post of the type {post_type} has no field {shown(name)}: it has {', '.join(wanted)}")
    for name in wanted:
        if name not in value:
            raise EncodeError(f"{name}: every post of the type {post_type} has it, and this has not")
    info = value.get("info", ())
    return Post(**{name: value[name] for name in wanted if name != "info"}, info=_pairs(info))


def _pairs(info: Any) -> Any:
    return tuple(info.items()) if isinstance(info, dict) else info
