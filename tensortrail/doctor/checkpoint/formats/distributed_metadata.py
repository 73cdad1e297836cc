"""The `.metadata` of torch.distributed.checkpoint: which file has which piece of a tensor."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

from tensortrail.doctor.checkpoint.formats.allowed_names import full_name, is_allowed, runs_code
from tensortrail.doctor.checkpoint.formats.beginnings import without_weights
from tensortrail.doctor.checkpoint.formats.pickle_structure import BadPickle, read_pickle
from tensortrail.doctor.checkpoint.formats.pickle_values import Made, Name, values_in
from tensortrail.doctor.checkpoint.formats.ranges import Ranges
from tensortrail.doctor.checkpoint.formats.stored_tensors import sizes_in
from tensortrail.rules.checkpoint_files import (
    Distributed,
    Flaw,
    Piece,
    SplitTensor,
    StoredPart,
    Trouble,
)

METADATA, OF_A_RANK = ".metadata", ".distcp"
_OWN = re.compile(
    r"torch\.distributed\.(checkpoint|_shard)"
    r"(\.(metadata|filesystem|_fsspec_filesystem|hf_storage|_hf_utils|sharded_tensor|planner))+"
    r"\.(Metadata|MetadataIndex|StorageMeta"
    r"|(Tensor|Bytes|Chunk)StorageMetadata|TensorProperties|_?MEM_FORMAT_ENCODING|_StorageInfo"
    r"|_StoragePrefix|ShardMetadata|ShardedTensorMetadata|_HFStorageInfo)"
    r"|torch\.(serialization\._get_layout|strided|preserve_format|contiguous_format|Size)"
    r"|pathlib\.(_local\.)?(Posix|Windows|Pure\w*)?Path"
)


_LAYOUTS = frozenset(
    f"torch.{name}"
    for name in (
        "strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged",
        "_mkldnn",
    )
)  # fmt: skip


_MEMORY_FORMAT = ("_MEM_FORMAT_ENCODING", "MEM_FORMAT_ENCODING")


class _Odd(Exception):
    """A part of it has another form."""


def read_distributed(file: Ranges, path: str, name: str) -> Distributed:
    if flaw := without_weights(file):
        return Distributed(path, name, flaws=(flaw,), usable=False)
    try:
        structure = read_pickle(io.BytesIO(file.read(0, file.size)))
    except BadPickle as error:
        trouble = Trouble.TRUNCATED if error.short else Trouble.METADATA
        flaw = Flaw(trouble, str(error), error.byte, error.byte)
        return Distributed(path, name, flaws=(flaw,), usable=False)
    flaws = tuple(_code(structure.names))
    try:
        _check_layouts(structure.root)
        root = _fields(structure.root)
        tensors = dict(_tensors(root.get("state_dict_metadata")))
        parts = tuple(_parts(root.get("storage_data")))
        _check_paths(root.get("planner_data"))
    except _Odd as error:
        told = f"it is not the metadata of a distributed checkpoint: {error}"
        more = () if flaws else (Flaw(Trouble.METADATA, told),)
        return Distributed(path, name, flaws=(*flaws, *more), usable=False)
    return Distributed(path, name, tensors, parts, flaws)


def _check_layouts(root: Any) -> None:
    for path, value in values_in(root):
        name = value.what.name if isinstance(value.what, Name) else ""
        arguments = value.arguments if isinstance(value.arguments, tuple) else ()
        given = arguments[0] if arguments else None
        if name == "_get_layout" and not (isinstance(given, str) and given in _LAYOUTS):
            raise _Odd(f"{path} has a layout that torch does not know")
        if name in _MEMORY_FORMAT and not (type(given) is int and 0 <= given <= 2):
            raise _Odd(f"{path} has a memory format that torch does not know")


def _check_paths(told: Any) -> None:
    """torch's own planner keeps where each entry goes in the state dict; another's is its own."""
    for key, path in told.items() if isinstance(told, dict) else ():
        if isinstance(path, tuple) and not all(type(each) in (str, int) for each in path):
            raise _Odd(f"the place of {key!r} in the state dict is not a path")


def _code(names: tuple[Name, ...]) -> Iterator[Flaw]:
    odd = [each for each in names if not is_allowed(each) and not _OWN.fullmatch(full_name(each))]
    if odd:
        hostile = [each for each in odd if runs_code(each)]
        told = ", ".join(full_name(each) for each in (hostile or odd)[:5])
        trouble = Trouble.EXECUTES if hostile else Trouble.CODE
        verb = "runs" if hostile else "imports"
        yield Flaw(trouble, f"loading it {verb} {told}", expected="metadata", found="code")


def _tensors(told: Any) -> Iterator[tuple[str, SplitTensor]]:
    for key, entry in _as_dict(told, "state_dict_metadata").items():
        if not _is_a(entry, "TensorStorageMetadata"):
            continue
        fields = _fields(entry)
        if not _are_properties(fields.get("properties")):
            raise _Odd(f"{key!r} has no properties of a tensor")
        chunks = fields.get("chunks")
        if not isinstance(chunks, list):
            raise _Odd(f"{key!r} has no list of chunks")
        pieces = tuple(_piece(key, each) for each in chunks)
        yield key, SplitTensor(key, _dtype(fields), _sizes(key, fields.get("size")), pieces)


def _piece(key: str, chunk: Any) -> Piece:
    fields = _fields(chunk)
    return Piece(_sizes(key, fields.get("offsets")), _sizes(key, fields.get("sizes")))


def _parts(told: Any) -> Iterator[StoredPart]:
    for index, info in _as_dict(told, "storage_data").items():
        where, fields = _fields(index), _fields(info)
        key, file = where.get("fqn"), fields.get("relative_path")
        begin, length = fields.get("offset"), fields.get("length")
        if not (isinstance(key, str) and isinstance(file, str)):
            raise _Odd("an entry of `storage_data` names no file")
        if not (type(begin) is int and type(length) is int and begin >= 0 and length >= 0):
            raise _Odd(f"the entry of {key!r} gives no place in {file}")
        offsets = where.get("offset")
        place = None if offsets is None else _sizes(key, offsets)
        packed = bool(fields.get("transform_descriptors"))
        yield StoredPart(key, place, file, begin, begin + length, packed)


def _are_properties(made: Any) -> bool:
    """Type, layout, whether it asks for gradients, memory format, whether it is pinned."""
    if not isinstance(made, Made):
        return False
    state = made.state
    return not isinstance(state, tuple) or (len(state) == 5 and _is_a(state[3], *_MEMORY_FORMAT))


def _dtype(fields: dict[Any, Any]) -> str:
    """The properties are a tuple that begins with the element type."""
    properties = fields.get("properties")
    state = properties.state if isinstance(properties, Made) else None
    first = state[0] if isinstance(state, tuple) and state else None
    return first.name if isinstance(first, Name) else ""


def _sizes(key: Any, value: Any) -> tuple[int, ...]:
    if (sizes := sizes_in(value)) is None:
        raise _Odd(f"a size of {key!r} is not a size")
    return sizes


def _fields(made: Any) -> dict[Any, Any]:
    if not isinstance(made, Made) or not isinstance(made.state, dict):
        raise _Odd("a part of it has no fields")
    return made.state


def _as_dict(value: Any, name: str) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise _Odd(f"it has no `{name}`")
    return value


def _is_a(value: Any, *names: str) -> bool:
    return isinstance(value, Made) and isinstance(value.what, Name) and value.what.name in names
