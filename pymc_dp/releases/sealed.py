"""Files of what was released: netCDF with a checksum after its end, so that a damaged file is found before the netCDF library opens it."""

from hashlib import sha256
from io import BytesIO
from os import PathLike, fsdecode, fsync, urandom
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING

from pymc_dp.privacy.accounting import Refusal

if TYPE_CHECKING:
    import xarray as xr


def write_sealed(tree: "xr.DataTree", path: str | PathLike[str], kind: str) -> None:
    """Write a tree and its checksum, whole or not at all.

    Parameters
    ----------
    tree : xarray.DataTree
    path : str or path
        What is there is replaced.
    kind : str
        What the file holds, in a word: ``"release"`` or ``"answers"``. Only a reader of the same kind accepts it.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        Before anything is written, where there is no such folder, or where the path is that of a folder.
    """
    whole = Path(realpath(fsdecode(path)))
    if whole.is_dir():
        raise IsADirectoryError(f"{path} is a folder. Write the path of a file in it.")
    if not whole.parent.is_dir():
        raise FileNotFoundError(
            f"There is no folder {whole.parent}. Make it first: pathlib.Path({str(whole.parent)!r}).mkdir(parents=True)."
        )
    building = whole.with_name(f"{urandom(8).hex()}.new")
    try:
        tree.to_netcdf(building, engine="h5netcdf")
        with building.open("r+b") as file:
            file.write(_seal(file.read(), kind))
            file.flush()
            fsync(file.fileno())
        building.replace(whole)
    finally:
        building.unlink(missing_ok=True)


def read_sealed(path: str | PathLike[str], kind: str, writer: str) -> "xr.DataTree":
    """Read a tree that ``write_sealed`` wrote.

    Parameters
    ----------
    path : str or path
    kind : str
        The kind of file that is expected.
    writer : str
        The class whose ``to_netcdf`` wrote it, for messages.

    Raises
    ------
    Refusal
        When the file is not what was written: nothing of a damaged file is shown to the netCDF library.
    FileNotFoundError
    """
    import xarray as xr

    where = Path(fsdecode(path))
    if not where.exists():
        raise FileNotFoundError(f"There is no file {where}.")
    if not where.is_file():  # to read a pipe or a device is to wait for ever
        raise Refusal(f"This is no file. Write the path of a file that {writer}.to_netcdf wrote.")
    content = where.read_bytes()
    size = len(_seal(b"", kind))
    content, seal = content[:-size], content[-size:]
    if seal != _seal(content, kind):
        raise Refusal(
            f"This file holds no {kind} that this version wrote, or it is damaged. Put the newest copy back; or, if another program wrote"
            f" it, write {writer}.from_datatree(xarray.open_datatree(path))."
        )
    with xr.open_datatree(BytesIO(content), engine="h5netcdf") as tree:
        return tree.load()


def _seal(content: bytes, kind: str) -> bytes:
    """The checksum of a file's content, as it stands at its end."""
    return f"\npymc_dp {kind} {sha256(content).hexdigest()}\n".encode()
