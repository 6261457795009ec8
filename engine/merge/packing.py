"""Bytes in JSON: readable where they are UTF-8, exact always."""

from base64 import b64decode, b64encode


def pack(data: bytes) -> str | dict[str, str]:
    """Text where the bytes are UTF-8, else an object that holds them in Base64."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}


def unpack(packed: object) -> bytes:
    """The bytes that `pack` packed."""
    match packed:
        case str():
            return packed.encode()
        case {"base64": str(digits)}:
            return b64decode(digits, validate=True)
        case _:
            raise ValueError(f"not packed bytes: {packed!r}")
