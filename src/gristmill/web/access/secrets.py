"""Secrets of 256 random bits: shown once, kept as SHA-256."""

import hashlib
import hmac
import secrets

KEY_PREFIX = "gm_"  # so that people and scanners of repositories recognize a key
LONGEST = 100  # characters: ours are shorter, and a text of megabytes must not be hashed


def make_secret(prefix: str = "") -> str:
    return prefix + secrets.token_urlsafe(32)


def digest(secret: str) -> bytes:
    """What is kept of a secret: it has 256 random bits, so a fast hash cannot be guessed back."""
    return hashlib.sha256(secret[:LONGEST].encode(errors="replace")).digest()


def derive(secret: str, purpose: str) -> str:
    """A second secret that only those can compute who know the first; it tells nothing of the first."""
    return hmac.new(secret.encode(errors="replace"), purpose.encode(), hashlib.sha256).hexdigest()


def are_equal(one: str, other: str) -> bool:
    """Compared in the same time, however much of them agrees."""
    return hmac.compare_digest(one.encode(errors="replace"), other.encode(errors="replace"))
