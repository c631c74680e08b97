"""Posts: what users write, signed; bytes to values and back.

    post      = public_key:u8[32] signature:u8[64] signed
    signed    = links:hashes post_type:varint timestamp:varint body         what the signature is of
    body      = text(0):   channel:sized text:sized
              | delete(1): hashes
              | info(2):   (key:sized value:sized)* 00
              | topic(3):  channel:sized topic:sized
              | join(4), leave(5): channel:sized
    hashes    = varint u8[32]*

The rest of the grammar is wire.py's. A post is named by its hash: BLAKE2b-256 of all its bytes, without
key and salt.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final, NamedTuple

from jitdb.common.words import shown, type_and_size
from jitdb.stores.cable import wire
from jitdb.stores.cable.errors import InvalidPost, NotAuthentic, NotEncodable
from jitdb.stores.cable.wire import HASH_BYTES, HASHES, Part, Reader, text_part

TEXT, DELETE, INFO, TOPIC, JOIN, LEAVE = range(6)
TYPES: Final = ("text", "delete", "info", "topic", "join", "leave")

KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
SIGNED_AT: Final = KEY_BYTES + SIGNATURE_BYTES  # where the part begins that the signature is of


class Post(NamedTuple):
    """What a post says. Of the fields from `channel` on, it has those of its type.

    timestamp: milliseconds since 1970
    info:      pairs of a key and the bytes of its value
    """

    public_key: bytes
    signature: bytes
    links: tuple[bytes, ...]
    post_type: int
    timestamp: int
    channel: str = ""
    text: str = ""
    topic: str = ""
    info: tuple[tuple[str, bytes], ...] = ()
    hashes: tuple[bytes, ...] = ()


FIELDS: Final = {
    TEXT: ("channel", "text"), DELETE: ("hashes",), INFO: ("info",), TOPIC: ("channel", "topic"),
    JOIN: ("channel",), LEAVE: ("channel",),
}  # fmt: skip


def hash_of(post: bytes) -> bytes:
    """The name of a post: the hash of its bytes. Raises InvalidPost for what is no bytes."""
    if not isinstance(post, (bytes, bytearray, memoryview)):
        raise InvalidPost(f"a post is bytes, not {type_and_size(post)}")
    return blake2b(post, digest_size=HASH_BYTES).digest()


# --- reading ---------------------------------------------------------------------------------------------------------


def decode_post(data: bytes) -> Post:
    """What these bytes say; whether they are signed is another question. Raises InvalidPost, with the position."""
    reader = Reader(data, InvalidPost)
    public_key = reader.take(KEY_BYTES, "the public key")
    signature = reader.take(SIGNATURE_BYTES, "the signature")
    links = reader.hashes("the list of links")
    type_at = reader.position
    post_type = reader.number()
    if post_type not in FIELDS:
        raise InvalidPost(f"the type at byte {type_at} is {post_type}: known are 0 to {LEAVE}", position=type_at)
    timestamp = reader.number()
    body = {name: _PARTS[name].read(reader) for name in FIELDS[post_type]}
    reader.end()
    return Post(public_key, signature, links, post_type, timestamp, **body)


def timestamp_of(data: bytes) -> int:
    """When a post was made, without looking at the rest. Raises InvalidPost."""
    reader = Reader(data, InvalidPost, SIGNED_AT)
    reader.hashes("the list of links")
    reader.number()
    return reader.number()


def _read_info(reader: Reader) -> tuple[tuple[str, bytes], ...]:
    found: list[tuple[str, bytes]] = []
    while True:
        begin = reader.position
        raw = reader.sized("key")
        if not raw:
            return tuple(found)
        key = reader.as_text("key", raw, begin)
        found.append((key, _read_value(reader, key)))


def _read_value(reader: Reader, key: str) -> bytes:
    begin = reader.position
    raw = reader.sized("value")
    if len(raw) > wire.BYTES["value"]:
        raise reader.refuse(wire.over_limit("value", "", len(raw)), begin)
    try:
        value_of(key, raw)
    except InvalidPost as error:
        raise reader.refuse(f"the value at byte {begin}: {error.reason}", begin) from None
    return raw


def value_of(key: str, raw: bytes) -> str | int | bytes:
    """What the bytes of a value in an information mean, which follows from its key. Raises InvalidPost.

    >>> value_of("name", b"ada"), value_of("accept-role", b"\\x01"), value_of("colour", b"red")
    ('ada', 1, b'red')
    """
    if key == "name":
        return Reader(raw, InvalidPost).as_text(key, raw, 0)
    if key == "accept-role":
        inner = Reader(raw, InvalidPost)
        found = inner.number()
        inner.end()
        return found
    return raw


# --- writing ---------------------------------------------------------------------------------------------------------


def encode_post(post: Post) -> bytes:
    """The bytes of a post. Raises NotEncodable, which names the field."""
    head = wire.fixed("public_key", post.public_key) + wire.fixed("signature", post.signature, SIGNATURE_BYTES)
    return head + encode_signed(post)


def encode_signed(post: Post) -> bytes:
    """The part of it that the signature is of. Raises NotEncodable."""
    if post.post_type not in FIELDS or isinstance(post.post_type, bool):
        raise NotEncodable(f"post_type: 0 to {LEAVE}, not {shown(post.post_type)}")
    parts = [wire.hashes("links", post.links), wire.number("post_type", post.post_type)]
    parts.append(wire.number("timestamp", post.timestamp))
    parts += (_PARTS[name].write(name, getattr(post, name)) for name in FIELDS[post.post_type])
    return b"".join(parts)


def _write_info(_: str, info: Any) -> bytes:
    try:
        pairs = [(key, value) for key, value in info]
    except (TypeError, ValueError):
        raise NotEncodable(f"info: pairs of a key and a value, not {type_and_size(info)}") from None
    return b"".join(wire.text("key", key) + _write_value(key, value) for key, value in pairs) + b"\0"


def _write_value(key: str, value: Any) -> bytes:
    raw = value_bytes(key, value)
    try:
        value_of(key, raw)
    except InvalidPost as error:
        raise NotEncodable(f"info: {error.reason}") from None
    if len(raw) > wire.BYTES["value"]:
        raise NotEncodable(wire.over_limit("value", "", len(raw)), remedy="shorten it")
    return wire.number("value", len(raw)) + raw


def value_bytes(key: str, value: Any) -> bytes:
    """The bytes of a value in an information, given as text, a number, or bytes. Raises NotEncodable."""
    if isinstance(value, str):
        return wire.utf8(key if key == "name" else "value", value)
    if isinstance(value, int):
        return wire.number("info", value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise NotEncodable(f"info: text, a number or bytes, not {type_and_size(value)}")


_PARTS: Final = {
    "channel": text_part("channel"), "text": text_part("text"), "topic": text_part("topic"), "hashes": HASHES,
    "info": Part(_read_info, _write_info),
}  # fmt: skip


# --- signatures ------------------------------------------------------------------------------------------------------


def sign_post(secret: bytes, post_type: int, timestamp: int, links: tuple[bytes, ...] = (), **body: Any) -> bytes:
    """The bytes of a post by the owner of these 32 secret bytes. Raises NotEncodable.

    >>> post = sign_post(bytes(32), TEXT, 1700000000000, channel="default", text="hello")
    >>> verify_post(post).text
    'hello'
    """
    from nacl.signing import SigningKey  # libsodium

    signing = SigningKey(wire.fixed("secret", secret))
    for name in body:
        if name not in FIELDS.get(post_type, (name,)):
            raise NotEncodable(f"a post of the type {post_type} has no {name}")
    for name in FIELDS.get(post_type, ()):
        if name not in body:
            raise NotEncodable(f"{name}: every post of the type {post_type} has it, and this has not")
    signed = encode_signed(Post(b"", b"", tuple(links), post_type, timestamp, **body))
    return bytes(signing.verify_key) + signing.sign(signed).signature + signed


def verify_post(data: bytes) -> Post:
    """What these bytes say, and their author signed. Raises InvalidPost, NotAuthentic."""
    from nacl.bindings import crypto_sign_open
    from nacl.exceptions import BadSignatureError

    post = decode_post(data)
    try:
        crypto_sign_open(data[KEY_BYTES:], post.public_key)  # a signature, and what it is of
    except BadSignatureError:
        reason = f"the signature of the post {hash_of(data).hex()} is not that of the key {post.public_key.hex()}"
        raise NotAuthentic(reason, remedy="ask another peer for it") from None
    return post
