"""Says which addresses of the Internet belong to the public: everything else may be a machine of our own."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address

# (network, what it is); IANA's registries of special addresses, and the places where clouds keep secrets
SPECIAL_V4 = tuple(
    (IPv4Network(network), kind)
    for network, kind in (
        ("169.254.0.0/16", "link-local, where clouds keep their metadata"),
        ("168.63.129.16/32", "the metadata of a cloud"),
        ("127.0.0.0/8", "this machine"),
        ("0.0.0.0/8", "this machine"),
        ("10.0.0.0/8", "a private network"),
        ("172.16.0.0/12", "a private network"),
        ("192.168.0.0/16", "a private network"),
        ("100.64.0.0/10", "a network behind a carrier"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "reserved for examples"),
        ("192.88.99.0/24", "reserved"),
        ("198.18.0.0/15", "reserved for measurements"),
        ("198.51.100.0/24", "reserved for examples"),
        ("203.0.113.0/24", "reserved for examples"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
)
SPECIAL_V6 = tuple(
    (IPv6Network(network), kind)
    for network, kind in (
        ("::/128", "this machine"),
        ("::1/128", "this machine"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "a private network"),
        ("fc00::/7", "a private network"),
        ("ff00::/8", "multicast"),
        ("2001::/32", "a tunnel (Teredo)"),
        ("2001::/23", "reserved"),
        ("2001:db8::/32", "reserved for examples"),
        ("2002::/16", "a tunnel (6to4)"),
        ("3fff::/20", "reserved for examples"),
    )
)
GLOBAL_V6 = IPv6Network("2000::/3")  # the only part of IPv6 from which public addresses are given
# networks whose last 32 bits are an IPv4 address: mapped, translated, compatible, NAT64
EMBEDDING_V6 = tuple(map(IPv6Network, ("::ffff:0:0/96", "::ffff:0:0:0/96", "::/96", "64:ff9b::/96")))
ISATAP = (0x00005EFE, 0x02005EFE)  # the third group of 32 bits; an IPv4 address follows
# an operator cannot allow these either
NEVER = tuple(map(IPv4Network, ("169.254.0.0/16", "168.63.129.16/32", "224.0.0.0/4", "240.0.0.0/4")))
NEVER_V6 = tuple(map(IPv6Network, ("fe80::/10", "ff00::/8", "fd00:ec2::254/128", "fd20:ce::254/128")))


def read_address(text: str) -> Address:
    """An address as the resolver writes it, with or without a zone; a spelling of an IPv4 address is read as that."""
    return list_reached(ip_address(text.partition("%")[0]))[0]


def list_reached(address: Address) -> list[Address]:
    """All addresses that a packet to this one may reach: itself, and the IPv4 address at the end of a tunnel.

    In some networks of IPv6 an address is only another spelling of an IPv4 address: that one is reached alone.
    """
    if isinstance(address, IPv4Address) or address in (IPv6Address("::"), IPv6Address("::1")):
        return [address]
    last = IPv4Address(int(address) & 0xFFFFFFFF)
    if any(address in network for network in EMBEDDING_V6):
        return [last]
    reached: list[Address] = [address]
    if (int(address) >> 32) & 0xFFFFFFFF in ISATAP:
        reached.append(last)
    if address.sixtofour is not None:
        reached.append(address.sixtofour)
    if address.teredo is not None:
        reached.extend(address.teredo)
    return reached


def explain_special(address: Address) -> str | None:
    """What a special address is; None for one of the public Internet. A tunnel is as special as its ends."""
    return next((kind for one in list_reached(address) if (kind := _name_kind(one))), None)


def _name_kind(address: Address) -> str | None:
    if isinstance(address, IPv4Address):
        return next((kind for network, kind in SPECIAL_V4 if address in network), None)
    kind = next((kind for network, kind in SPECIAL_V6 if address in network), None)
    return kind or (None if address in GLOBAL_V6 else "reserved")


def is_never_called(address: Address) -> bool:
    """Metadata of clouds, link-local and multicast: no list of allowed hosts opens these."""
    return any(one in network for one in list_reached(address) for network in (*NEVER, *NEVER_V6))
