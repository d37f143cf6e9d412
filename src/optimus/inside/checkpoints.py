"""Checkpoints in a folder: written beside, made whole, then renamed; what is not whole is never loaded.

One checkpoint is a folder `00000007-step-1200`: `checkpoint.json` (where the loops are, when, and what the other files
must look like), `state.pickle`, and `saved`, which belongs to the script's own save= (a file or a folder). The first
number orders them. A name with a dot in front is being written or removed; `unreadable-…` is one that was set aside.
"""

from __future__ import annotations

import errno
import json
import os
import pickle
import re
import time
import warnings
import zlib

from optimus.inside import states
from optimus.inside.contract import CheckpointError, CheckpointWarning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, Callable

    Save = Callable[[Path], object]

NAME = re.compile(r"(\d{8})-step-\d+\Z")
ABOUT, STATE, SAVED = "checkpoint.json", "state.pickle", "saved"
FORMAT = 1
CHUNK = 1 << 20


class Checkpoint:
    def __init__(self, path: str, step: int, at_ms: int, about: dict[str, Any]) -> None:
        self.path, self.step, self.at_ms, self.about = path, step, at_ms, about


class NotWholeError(Exception):
    """Cut off, or changed since it was written."""


class CountingFile:
    """A file that knows the length and checksum of what went through it."""

    def __init__(self, file: Any) -> None:
        self.file, self.bytes, self.checksum = file, 0, 0

    def write(self, data: Any) -> int:
        self.file.write(data)
        size = memoryview(data).nbytes
        self.bytes += size
        self.checksum = zlib.crc32(data, self.checksum)
        return size


class Checkpoints:
    def __init__(self, folder: str, keep: int) -> None:
        self.folder, self.keep = folder, keep

    def prepare(self) -> None:
        """Before the first step: a folder that cannot be written to is an error now, and not after hours."""
        probe = os.path.join(self.folder, f".probe-{os.getpid()}")
        try:
            os.makedirs(self.folder, exist_ok=True)
            for name in os.listdir(self.folder):
                if name.startswith("."):  # left by a process that was killed
                    remove(os.path.join(self.folder, name))
            os.mkdir(probe)
            os.rmdir(probe)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                warnings.warn(f"{self.folder} is full: {error.strerror}", CheckpointWarning, stacklevel=2)
                return
            raise CheckpointError(
                f"checkpoints cannot be written to {self.folder}: {error.strerror or error}. Make the folder writable "
                "for this user, or name another one (OPTIMUS_CHECKPOINT_DIR, or folder= where that is not set)."
            ) from error

    def newest_first(self) -> list[str]:
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        return sorted((name for name in names if NAME.match(name)), reverse=True)

    # ------------------------------------------------------------------------------------------------- writing

    def write(self, about: dict[str, Any], step: int, state: Any, value: Any, save: Save | None) -> Checkpoint:
        """All of it or nothing. OSError: there was no room or no right; CheckpointError: the state cannot be saved."""
        from pathlib import Path

        being_written = os.path.join(self.folder, f".writing-{os.getpid()}")
        remove(being_written)
        try:
            os.mkdir(being_written)
            files = {STATE: write_state(os.path.join(being_written, STATE), state, value)}
            if save is not None:
                own = os.path.join(being_written, SAVED)
                save(Path(own))
                files.update(made_durable(being_written, own))
            now_ms = time.time_ns() // 1_000_000
            content = {"format": FORMAT, "step": step, "at_ms": now_ms, **about, "files": files}
            with open(os.path.join(being_written, ABOUT), "w", encoding="utf-8") as file:
                json.dump(content, file)
                flush(file)
            sync_folder(being_written)
            path = self._take_name(being_written, step)
        except BaseException:
            remove(being_written)
            raise
        self._remove_old()
        return Checkpoint(path, step, now_ms, content)

    def _take_name(self, being_written: str, step: int) -> str:
        last = int(NAME.match(names[0]).group(1)) if (names := self.newest_first()) else 0  # type: ignore[union-attr]
        path = os.path.join(self.folder, f"{last + 1:08d}-step-{step}")
        os.rename(being_written, path)
        sync_folder(self.folder)
        return path

    def _remove_old(self) -> None:
        for name in self.newest_first()[self.keep :]:
            going = os.path.join(self.folder, f".removing-{name}")
            try:
                os.rename(os.path.join(self.folder, name), going)
            except OSError:
                continue
            remove(going)

    # ------------------------------------------------------------------------------------------------- reading

    def resume(self, take: Callable[[Checkpoint, Any], None], load: Save | None, *, mend: bool) -> Checkpoint | None:
        """Hands the newest whole checkpoint to `take`, then to the script's own load=. None: there is none at all."""
        from pathlib import Path

        broken: list[tuple[str, Exception]] = []
        for name in self.newest_first():
            path = os.path.join(self.folder, name)
            try:
                checkpoint = read_about(path)
                value = read_state(checkpoint)
                if load is not None:
                    read_own(checkpoint, load, Path(path) / SAVED)
            except NotWholeError as error:
                broken.append((name, error))
                continue
            take(checkpoint, value)
            self._say_what_is_broken(broken, name, mend=mend)
            return checkpoint
        if broken:
            raise CheckpointError(
                f"none of the checkpoints in {self.folder} can be read: "
                + "; ".join(f"{name}: {error}" for name, error in broken)
                + ". Nothing was changed. To start from the beginning, remove the folder or give another name=."
            ) from broken[0][1]
        return None

    def _say_what_is_broken(self, broken: list[tuple[str, Exception]], used: str, *, mend: bool) -> None:
        for name, error in broken:
            warnings.warn(
                f"checkpoint {name} in {self.folder} is not whole ({error}); resuming from {used}, the one before",
                CheckpointWarning,
                stacklevel=2,
            )
            if mend:
                aside = os.path.join(self.folder, f"unreadable-{name}")
                remove(aside)
                try:
                    os.rename(os.path.join(self.folder, name), aside)
                except OSError:
                    continue


def write_state(path: str, state: Any, value: Any) -> dict[str, int]:
    with open(path, "wb") as file:
        counting = CountingFile(file)
        states.write(value, state, counting)
        flush(file)
    return {"bytes": counting.bytes, "crc32": counting.checksum}


def read_about(path: str) -> Checkpoint:
    try:
        with open(os.path.join(path, ABOUT), encoding="utf-8") as file:
            about = json.load(file)
        checkpoint = Checkpoint(path, int(about["step"]), int(about["at_ms"]), about)
        files = about["files"].items()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotWholeError(f"{ABOUT}: {error}") from error
    if about.get("format") != FORMAT:
        raise CheckpointError(f"{path} was written in format {about.get('format')}; this version reads {FORMAT}")
    for name, expected in files:
        try:
            size = os.path.getsize(os.path.join(path, name))
        except OSError as error:
            raise NotWholeError(f"{name}: {error.strerror}") from error
        if size != expected["bytes"]:
            raise NotWholeError(f"{name} has {size} bytes instead of {expected['bytes']}")
    return checkpoint


def read_state(checkpoint: Checkpoint) -> Any:
    path = os.path.join(checkpoint.path, STATE)
    if checksum_of(path) != checkpoint.about["files"][STATE]["crc32"]:
        raise NotWholeError(f"{STATE} is not what was written (checksum)")
    try:
        with open(path, "rb") as file:
            return pickle.load(file)
    except Exception as error:
        raise CheckpointError(
            f"{checkpoint.path} is whole, but this script cannot read it: {type(error).__name__}: {error}. Has a "
            "class or module been renamed? Resume with the script that wrote it, or give the loop another name=."
        ) from error


def checksum_of(path: str) -> int:
    checksum = 0
    try:
        with open(path, "rb") as file:
            while chunk := file.read(CHUNK):
                checksum = zlib.crc32(chunk, checksum)
    except OSError as error:
        raise NotWholeError(f"{STATE}: {error.strerror}") from error
    return checksum


def read_own(checkpoint: Checkpoint, load: Save, own: Path) -> None:
    if not own.exists():
        raise CheckpointError(
            f"{checkpoint.path} was written without save=, and the script resumes with load=. Resume with the script "
            "that wrote it, or give the loop another name= to start from the beginning."
        )
    try:
        load(own)
    except Exception as error:  # only the length of these files is known, so a bad one is found by whoever reads it
        raise NotWholeError(f"load= fails with {type(error).__name__}: {error}") from error


def made_durable(folder: str, own: str) -> dict[str, dict[str, int]]:
    """Lengths of what the script wrote; all of it on the disk before the checkpoint counts."""
    if not os.path.exists(own):
        raise CheckpointError(
            f"save= wrote nothing: it is called with a path and must make a file or a folder there ({SAVED})"
        )
    found: dict[str, dict[str, int]] = {}
    for path in [own] if os.path.isfile(own) else files_below(own):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
        found[os.path.relpath(path, folder)] = {"bytes": os.path.getsize(path)}
    return found


def files_below(folder: str) -> list[str]:
    found: list[str] = []
    for place, _, names in os.walk(folder):
        found.extend(os.path.join(place, name) for name in names)
        sync_folder(place)
    return found


def remove(path: str) -> None:
    """As far as it can be."""
    import shutil

    shutil.rmtree(path, ignore_errors=True)


def flush(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


def sync_folder(path: str) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
