"""Events are told in plain sentences."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from tensortrail.findings import Site
from tensortrail.rules.shared import sizes
from tensortrail.rules.timeline import Did, Event, Storage


def described(storage: Storage) -> str:
    """What a tensor without a name is called."""
    shape = "x".join(map(str, storage.shape)) or "scalar"
    kind = f"{storage.type_name} " if storage.type_name else ""
    return f"{kind}{storage.dtype or 'bytes'} {shape}".strip()


def size(nbytes: object) -> str:
    """A size from a trail, which may hold anything in its place."""
    return sizes.size(nbytes) if isinstance(nbytes, (int, float)) else "? bytes"


def who(event: Event, within_rank: bool = False) -> str:
    """The process and the thread, where these are not the first ones: ` (rank 1, thread loader)`.
    Within one rank that is the child process only."""
    process = event.process.partition(", ")[2] if within_rank else event.process
    told = [process] if process not in ("", "main") else []
    told += [f"thread {event.thread}"] if event.thread not in ("", "MainThread") else []
    return f" ({', '.join(told)})" if told else ""


def sentence(event: Event, name: Callable[[Storage], str]) -> str:
    """One line about an event."""
    subject = name(event.storage) if event.storage else event.op or event.did.value
    return f"{subject} {_what(event, name)}".strip()


def _what(event: Event, name: Callable[[Storage], str]) -> str:
    storage, other, facts, op = event.storage, event.other, event.facts, event.op
    device = storage.device if storage else "?"
    source = other.device if other else "?"
    match event.did:
        case Did.CREATE:
            return f"made on {device} by {op} ({size(storage.nbytes if storage else 0)})"
        case Did.MOVE:
            many = size(storage.nbytes if storage else 0)
            return f"moved {source} -> {device} by {op} ({many}){_for_hook(event)}"
        case Did.ASKED:
            return f"asked to move by {op}: it was there already"
        case Did.COPY:
            return f"on {device} written from {name(other) if other else '?'} on {source} by {op}"
        case Did.ALIAS:
            return f"on {device} shared by {op}"
        case Did.SWAP:
            if said := facts.get("said"):
                return f"on {device}, {said} by {op}"
            return f"on {device} put in place of what was on {source} by {op}{_for_hook(event)}"
        case Did.RESIZE:
            return f"resized from {size(facts.get('before', 0))} to {size(facts.get('after', 0))}"
        case Did.FREE:
            return f"freed on {device}"
        case Did.SAVE:
            return f"on {device} given to {op}{_path(event)}"
        case Did.LOAD:
            return f"read onto {device} by {op}{_path(event)}{_cast(event)}"
        case Did.MEET:
            return (
                f"on {device} given to {op} with tensors on {_others(facts.get('devices'), device)}"
            )
        case Did.ERROR:
            given = f"on {device} given to {op}, which " if storage else ""
            return f"{given}raised {facts.get('type', 'an exception')}"
        case Did.POINTER:
            why = facts.get("why", "no bytes")
            return f"gave an address that identifies nothing ({why}) to {op}"
        case Did.UNWRITTEN:
            return f"read by {op} before anything was written into it"
        case Did.MODULE:
            before, after = _by_device(facts.get("before")), _by_device(facts.get("after"))
            source = f"from {before} " if facts.get("before") else "without parameters "
            return f"moved as a module {source}to {after}"
        case Did.STAGE:
            return f"staged on {device} for an asynchronous save"
        case Did.WRAPPER:
            return _odd(event)
        case Did.EARLY if facts.get("writes"):
            return f"written by {op} before its copy to {facts.get('device')} was waited for"
        case Did.EARLY:
            return f"read by {op} before the copy from {facts.get('device')} was waited for"
        case Did.COLLECTIVE:
            return f"took {_seconds(facts.get('took'))} as collective {facts.get('number', '?')}"
        case Did.USED | Did.RACE:
            return _on_stream(event)
        case Did.HOOK:
            return str(event.facts.get("said") or f"acted on by {op}")
        case Did.PENDING:
            return f"saved in the background, not awaited before {facts.get('next', 'the end')}"
        case Did.PHASE:
            failed = f"{facts['failed']} failed" if facts.get("failed") else ""
            return str(facts.get("began") or failed or f"{facts.get('ended')} ended")
        case _:
            return f"{event.did.value} {op}".strip()


def _seconds(micros: object) -> str:
    return f"{micros / 1e3:.1f} ms" if isinstance(micros, (int, float)) else "some time"


def _on_stream(event: Event) -> str:
    facts, by = event.facts, f" by {event.op}" * bool(event.op)
    told = f"{facts.get('does', 'used')} on {facts.get('stream', 'a stream')}{by}"
    library = event.by if event.site else None
    return f"{told} [{short(library.file)}:{library.line}]" if library else told


def _for_hook(event: Event) -> str:
    return f" for {event.facts['hook']}" if event.facts.get("hook") else ""


def _odd(event: Event) -> str:
    facts = event.facts
    kind = str(facts.get("class", "")).rpartition(".")[2]
    match facts.get("question"):
        case "answer":
            result = str(facts.get("result", "")).rpartition(".")[2]
            return f"({kind}) answered {event.op} with {result} on {facts.get('device')}"
        case "asymmetry":
            own, other = facts.get("own_on"), facts.get("other_on")
            return f"({kind}) answered {event.op} with its own type on {own}, not on {other}"
        case "device":
            inner = ", ".join(map(str, facts.get("inner", ())))
            return f"({kind}) says {facts.get('outer')}, its inner tensors are on {inner}"
        case "companion":
            stayed = _listed(facts.get("stayed"))
            return f"({kind}) moved to {facts.get('went')} by {event.op}, without its {stayed}"
        case "storage":
            return f"({kind}) gave another storage than before"
        case "size":
            said, held = size(facts.get("bytes")), size(facts.get("held"))
            return f"({kind}) has a storage of {said}, its inner tensors have {held}"
        case "data":
            return f"({kind}) kept its inner tensors when {event.op} gave it others"
        case _:
            return f"was set to a storage without bytes by {event.op}"


def _by_device(nbytes: object) -> str:
    if not isinstance(nbytes, Mapping):
        return str(nbytes)
    return ", ".join(f"{device} ({size(each)})" for device, each in nbytes.items()) or "nowhere"


def _others(devices: object, own: str) -> str:
    others = [each for each in devices if each != own] if isinstance(devices, (list, tuple)) else ()
    return _listed(others) if others else "several devices"


def _listed(values: object) -> str:
    return ", ".join(map(str, values)) if isinstance(values, (list, tuple)) else str(values)


def _path(event: Event) -> str:
    path, key = event.facts.get("path"), event.facts.get("key")
    return (f" as {key}" if key else "") + (f" ({path})" if path else "")


def _cast(event: Event) -> str:
    cast, replaced = event.facts.get("cast"), event.facts.get("replaced")
    told = f", {cast}" if cast else ""
    return told + (f", into another tensor than the one on {replaced}" if replaced else "")


def place(site: Site | None) -> str:
    return "?" if site is None else f"{short(site.file)}:{site.line}"


def short(file: str) -> str:
    """A path as people say it: below the folder they are in, or below a library's."""
    for folder in ("site-packages", "dist-packages"):
        _, found, rest = file.rpartition(f"{os.sep}{folder}{os.sep}")
        if found:
            return rest
    return below_here(file)


def below_here(file: str) -> str:
    """Relative, if it lies below the folder we are in."""
    here = os.getcwd() + os.sep
    return file[len(here) :] if file.startswith(here) else file
