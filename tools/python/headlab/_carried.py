# SPDX-License-Identifier: Apache-2.0
"""What is pickled as the file that it writes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def bytes_of(save: Callable[[str], None]) -> bytes:
    """What `save` writes to a NetCDF file."""
    with tempfile.TemporaryDirectory(prefix="headlab-") as folder:
        path = os.path.join(folder, "carried.nc")
        save(path)
        return Path(path).read_bytes()


@contextmanager
def file_of(content: bytes) -> Iterator[str]:
    """The path of a NetCDF file of these bytes, for as long as the context lasts."""
    with tempfile.TemporaryDirectory(prefix="headlab-") as folder:
        yield write_bytes(content, folder)


def write_bytes(content: bytes, folder: str) -> str:
    """The path of the file."""
    path = os.path.join(folder, "carried.nc")
    Path(path).write_bytes(content)
    return path
