"""What can go wrong with a cable store, beside what can go wrong with its logs."""

from __future__ import annotations

from jitdb.errors import DecodeError, EncodeError, JitdbError


class CableError(JitdbError):
    """A cable store cannot do what it was asked."""


class InvalidPost(CableError, DecodeError):
    """Bytes that are no post: cut short, of an unknown type, over a limit, or with something behind. See `position`."""


class InvalidMessage(CableError, DecodeError):
    """Bytes that are no message. `position` is the byte in them."""


class NotEncodable(CableError, EncodeError):
    """A post or message that has no bytes: a field is missing, of another type, or over a limit."""


class NotAuthentic(CableError):
    """A post that its public key did not sign."""


class TooEarly(CableError):
    """A post that says it was made a week or more from now."""
