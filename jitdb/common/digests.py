"""BLAKE2b without hashlib, which loads OpenSSL: that would take a tenth of a short command."""

try:
    from _blake2 import blake2b
except ImportError:  # of another Python
    from hashlib import blake2b

__all__ = ["blake2b"]
