"""UET's security sublayer by another implementation: of frames as they are, with `cryptography`.

Written from the header's table and from SP 800-108, not from the core.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.cmac import CMAC

ETHERNET, UDP, HEADER, SSI, ICV = 14, 8, 12, 4, 16


class Opened(NamedTuple):
    """What a frame says."""

    an: int
    sdi: int
    ssi: int | None
    count: int
    pds: bytes


def derived(key: bytes, context: bytes) -> tuple[bytes, bytes]:
    """A source's key and mask: KDF in counter mode, by CMAC, of label U1 and 352 bits."""
    out = b""
    for counter in (1, 2, 3):
        mac = CMAC(AES(key))
        mac.update(bytes((counter,)) + b"U1\0" + context + struct.pack("!I", 352))
        out += mac.finalize()
    return out[:32], out[32:44]


def _parts(frame: bytes) -> tuple[int, bytes, bytes, int]:
    """Where TSS begins, the source address, all that is authenticated before, and IP's end."""
    is_v6 = frame[14] >> 4 == 6
    source, size, ip = (22, 16, 40) if is_v6 else (26, 4, 20)
    length = struct.unpack_from("!H", frame, 18 if is_v6 else 16)[0] + (40 if is_v6 else 0)
    at = ETHERNET + ip + UDP
    return at, frame[source : source + size], frame[source:at], ETHERNET + length


def _material(key: bytes, header: bytes, source: bytes) -> tuple[AESGCM, bytes]:
    ssi = header[4:8] if header[0] & 4 else b""
    count = header[-8:]
    if ssi or len(source) == 4:
        context, first = bytes(6) + (ssi or source), ssi or source
    else:
        context, first = bytes(10) + source, b"\0" + header[1:4]
    own, mask = derived(key, context)
    iv = bytes(a ^ b for a, b in zip(first + count, mask, strict=True))
    return AESGCM(own), iv


def header_of(frame: bytes) -> bytes:
    """The security header."""
    at = _parts(frame)[0]
    return frame[at : at + HEADER + (SSI if frame[at] & 4 else 0)]


def opened(frame: bytes, key: bytes) -> Opened:
    """A frame by its domain's key; `cryptography.exceptions.InvalidTag` if it is another's."""
    at, source, before, end = _parts(frame)
    header = header_of(frame)
    assert header[0] >> 3 == 1 and not header[0] & 2
    cipher, iv = _material(key, header, source)
    pds = cipher.decrypt(iv, frame[at + len(header) : end], before + header)
    word = struct.unpack("!I", header[:4])[0]
    ssi = struct.unpack("!I", header[4:8])[0] if header[0] & 4 else None
    return Opened(header[0] & 1, word & 0xFFFFFF, ssi, struct.unpack("!Q", header[-8:])[0], pds)


def sealed(frame: bytes, key: bytes) -> bytes:
    """A frame whose headers are as they should be, encrypted: what stands there for the ICV is not
    looked at."""
    at, source, before, end = _parts(frame)
    header = header_of(frame)
    cipher, iv = _material(key, header, source)
    inside = frame[at + len(header) : end - ICV]
    return frame[: at + len(header)] + cipher.encrypt(iv, inside, before + header)
