"""machine.json: the computer that a folder of rows was measured on."""

from __future__ import annotations

from pydantic import Field, PositiveInt

from fidopt.descriptors.base import File, Name, Text


class Machine(File):
    """A computer.

    Parameters
    ----------
    name
        The folder's name under results/.
    hostnames
        The hosts whose rows go there.
    cpu, cores, ram_gib, gpu
        What it is made of; ``gpu`` is null where it has none.
    threads
        The most threads a method is given here.
    """

    name: Name
    hostnames: tuple[Text, ...] = ()
    cpu: Text
    cores: PositiveInt
    ram_gib: float = Field(gt=0)
    gpu: Text | None = None
    threads: PositiveInt
