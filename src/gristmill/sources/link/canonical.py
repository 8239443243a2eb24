"""One spelling for each address: without fragment, without parameters that count clicks, without wrappers."""

import hashlib
from collections.abc import Sequence
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from url_normalize import url_normalize  # pyright: ignore[reportUnknownVariableType] a parameter that we do not use

from gristmill.sources.fetch.location import Location, read_location
from gristmill.sources.link.words import load_words

WRAPPERS = {  # the host of a wrapper (or its end), and the parameters that hold the address
    "safelinks.protection.outlook.com": ("url",),
    "www.google.com/url": ("q", "url"),
    "l.facebook.com/l.php": ("u",),
    "lm.facebook.com/l.php": ("u",),
    "www.linkedin.com/redir/redirect": ("url",),
    "slack-redir.net/link": ("url",),
    "out.reddit.com": ("url",),
    "href.li": (),  # the whole query is the address
}
TRACKING = load_words("tracking_parameters")
MOST_WRAPPERS = 3


def canonicalise(text: str) -> Location:
    """The place that an address in a text means; Unsafe if it could never be called."""
    location = _normalise(text)
    for _ in range(MOST_WRAPPERS):
        inner = _unwrap(location)
        if inner is None:
            break
        location = _normalise(inner)
    return _strip_tracking(location)


def hash_url(url: str) -> bytes:
    return hashlib.sha256(url.encode()).digest()


def name_urn(url: str) -> str:
    """The URN of the document that a link becomes."""
    return f"link::{hash_url(url).hex()}"


def _normalise(text: str) -> Location:
    url = text if "://" in text[:10] else f"https://{text}"
    strict = read_location(url)  # before the library, which forgives more than we do
    try:
        return read_location(url_normalize(strict.url) or strict.url)
    except (ValueError, UnicodeError):
        return strict


def _unwrap(location: Location) -> str | None:
    path, _, query = location.target.partition("?")
    for wrapper, names in WRAPPERS.items():
        host, _, beginning = wrapper.partition("/")
        if not (location.host == host or location.host.endswith(f".{host}")) or not path.startswith(f"/{beginning}"):
            continue
        values = dict(parse_qsl(query)) if names else {"": unquote(query)}
        inner = next((values[name] for name in names or ("",) if values.get(name)), None)
        if inner and urlsplit(inner).scheme in ("http", "https"):
            return quote(inner, safe="%/:=&?~#+!$,;'@()*[]")
    return None


def _strip_tracking(location: Location) -> Location:
    path, _, query = location.target.partition("?")
    kept = [pair for pair in query.split("&") if pair and not _is_tracking(pair.partition("=")[0].lower())]
    target = path + (f"?{'&'.join(kept)}" if kept else "")
    return Location(location.scheme, location.host, location.port, target)


def _is_tracking(name: str) -> bool:
    return name in TRACKING or name.startswith("utm_")


def list_domains(host: str) -> Sequence[str]:
    """A host and the domains that it belongs to, the longest first: `a.b.org` → `a.b.org`, `b.org`, `org`."""
    labels = host.split(".")
    return [".".join(labels[at:]) for at in range(len(labels))]
