"""What the system refuses, in words: the path, what happened, the cure."""

from __future__ import annotations

import errno
import os
from pathlib import Path

WRITABLE = "Choose a place you may write to"
FAILURES: dict[int, tuple[str, str]] = {  # of each error number: what happened, the cure
    errno.ENOSPC: ("no space is left on its disk", "Make room there, or choose a place on another disk."),
    errno.EDQUOT: ("your share of its disk is used up", "Make room there, or choose a place on another disk."),
    errno.EFBIG: ("the file grew beyond what is allowed", "Raise the limit (ulimit -f), or choose another disk."),
    errno.EROFS: ("its disk can only be read", f"{WRITABLE}."),
    errno.EACCES: ("access is not permitted", f"{WRITABLE} and read from, or change its permissions."),
    errno.EPERM: ("the system does not permit it", f"{WRITABLE} and read from, or change its permissions."),
    errno.ENOENT: ("it does not exist", "Check the path, or make its folder."),
    errno.ENOTDIR: ("a part of the path is a file, not a folder", "Choose a path of folders, or move the file."),
    errno.EISDIR: ("a folder is in the way", "Choose another name, or move the folder."),
    errno.EEXIST: ("something is in the way", "Choose another name, or move it."),
    errno.ENOTEMPTY: ("a folder that is not empty is in the way", "Choose another name, or move the folder."),
    errno.ENAMETOOLONG: ("the name is too long for its disk", "Choose a shorter one."),
    errno.ELOOP: ("its links lead in a circle", "Mend the links, or choose another path."),
    errno.EMFILE: ("too many files are open", "Raise the limit (ulimit -n), and try again."),
    errno.ENFILE: ("too many files are open on this machine", "Close other programs, and try again."),
    errno.ENOMEM: ("the machine has no memory left for it", "Close other programs, and try again."),
    errno.EIO: ("its disk or device failed", "Check the disk, or choose another."),
    errno.EBUSY: ("another program holds it", "End that program, or choose another place."),
    errno.ENODEV: ("its device is gone", "Choose another place."),
    errno.ESTALE: ("its network disk is gone", "Mount it again, or choose another place."),
}
MEMORY = (
    "not enough memory for this. Take a smaller --dim, --batch-size, --negatives, --candidates-per-step, --directions "
    "or --paths, whichever was raised, or a machine with more."
)
_TORCH_SAYS = ("not enough memory", "can't allocate memory", "out of memory")


def os_words(error: OSError) -> str:
    """One line about an error of the system: path, what happened, cure."""
    known = FAILURES.get(error.errno or 0)
    what, cure = known or (error.strerror or str(error) or type(error).__name__, "Check the path, and try again.")
    where = _shortened(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else ""
    return f"{where}: {what}. {cure}" if where else f"{what}. {cure}"


def memory_words(error: BaseException) -> str | None:
    """The line about a lack of memory, None for any other error. Torch has no class of its own for it on a CPU."""
    if isinstance(error, MemoryError):
        return MEMORY
    short = isinstance(error, RuntimeError) and any(words in str(error) for words in _TORCH_SAYS)
    return MEMORY if short else None


def _shortened(path: str, longest: int = 60) -> str:
    """A path of which no name is longer than a line can bear."""
    names = (n if len(n) <= longest else f"{n[: longest // 2]}…{n[-longest // 4 :]}" for n in Path(path).parts)
    return str(Path(*names)) if path else ""
