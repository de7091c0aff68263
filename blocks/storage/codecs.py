"""What an array's metadata say: whether it is laid out as every store of ours, and how it is compressed."""

from __future__ import annotations

from typing import Any

from numcodecs.blosc import Blosc  # type: ignore[import-untyped]  # it has no types


def codec_of(*, cname: str, clevel: int, shuffle: str, typesize: int, blocksize: int) -> Blosc:
    """Return what compresses as an array's metadata say."""
    order = {"noshuffle": Blosc.NOSHUFFLE, "shuffle": Blosc.SHUFFLE, "bitshuffle": Blosc.BITSHUFFLE}
    return Blosc(cname=cname, clevel=clevel, shuffle=order[shuffle], typesize=typesize, blocksize=blocksize)


def is_ours(said: dict[str, Any], sharding: dict[str, Any]) -> bool:
    """Whether an array's metadata describe the layout read here."""
    inside, encoding = sharding["configuration"], said["chunk_key_encoding"]
    little = {"endian": "little"}
    return (
        sharding["name"] == "sharding_indexed"
        and [c["name"] for c in inside["codecs"]] == ["bytes", "blosc"]
        and inside["codecs"][0].get("configuration", little) == little
        and [c["name"] for c in inside["index_codecs"]] == ["bytes", "crc32c"]
        and inside["index_codecs"][0].get("configuration", little) == little
        and inside.get("index_location", "end") == "end"
        and encoding["name"] == "default"
        and encoding.get("configuration", {}).get("separator", "/") == "/"
        and not said.get("storage_transformers")
        and isinstance(said["fill_value"], bool | int | float)
    )
