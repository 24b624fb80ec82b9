"""Is the record whole? Looks at rows as they are stored, and believes none."""

from __future__ import annotations

import json

from ..contract.errors import ServewrightError
from .ledger import Ledger, chain_hash
from .records import KINDS, parse
from .schema import GENESIS, SCHEMA


def check_chain(ledger: Ledger, head: str | None = None) -> tuple[list[str], bool]:
    """Problems of the file, its triggers, the chain and the anchor; and whether all bodies can be read.

    `head`: a hash noted earlier (a report names one); the chain must still hold it.
    """
    rows, schema, damage = ledger.raw()
    problems = [f"ledger.db: {line}" for line in damage]
    for name, statement in SCHEMA.items():
        if schema.get(name) != statement:
            problems.append(f"ledger.db: {name} is {'changed' if name in schema else 'missing'}; entries could have been changed or deleted")
    problems += [f"ledger.db: {name} doesn't belong to a ledger" for name in schema if name not in SCHEMA]
    readable, previous = True, GENESIS
    for number, (seq, kind, key, body, at, prev, digest) in enumerate(rows, start=1):
        where = f"entry {seq} ({kind} {key or ''})".replace(" )", ")")
        if seq != number:
            problems.append(f"{where}: an entry before it is missing, number {number} is due")
        if prev != previous:
            problems.append(f"{where}: doesn't follow the entry before it")
        if chain_hash([seq, kind, key, body, at, prev]) != digest:
            problems.append(f"{where}: was changed, its hash doesn't fit")
        if problem := _unreadable(kind, body):
            readable = False
            problems.append(f"{where}: {problem}")
        previous = digest
    hashes = [row[6] for row in rows]
    problems += _anchor_problems(ledger, hashes)
    if head is not None and head not in hashes:
        problems.append(f"the entry with hash {head} is gone: entries were cut off, or the whole ledger was written anew")
    return problems, readable


def _unreadable(kind: str, body: str) -> str:
    if kind not in KINDS:
        return "no such kind"
    try:
        parse(kind, json.loads(body))
    except (ValueError, ServewrightError) as error:
        return str(error)
    return ""


def _anchor_problems(ledger: Ledger, hashes: list[str]) -> list[str]:
    if not ledger.head_path.is_file():
        return []
    number, _, digest = ledger.head_path.read_text(encoding="utf-8", errors="replace").strip().partition(" ")
    if not number.isdecimal() or int(number) < 1:
        return [f"{ledger.head_path.name} can't be read"]
    if int(number) > len(hashes):
        return [f"entries are missing at the end: {ledger.head_path.name} tells of {int(number)}, the ledger holds {len(hashes)}"]
    if hashes[int(number) - 1] != digest:
        return [f"{ledger.head_path.name} doesn't fit entry {int(number)}"]
    return []
