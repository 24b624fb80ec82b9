"""The ledger's tables, and the triggers that let entries only be added at the end."""

from __future__ import annotations

GENESIS = "0" * 64
"""What the first entry names as its predecessor."""

SCHEMA: dict[str, str] = {
    "entries": """CREATE TABLE entries (
  seq INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  key TEXT,
  body TEXT NOT NULL,
  at TEXT NOT NULL,
  prev TEXT NOT NULL,
  hash TEXT NOT NULL,
  campaign TEXT GENERATED ALWAYS AS (json_extract(body, '$.campaign')) VIRTUAL
) STRICT""",
    "entries_key": "CREATE UNIQUE INDEX entries_key ON entries (kind, key)",
    "entries_campaign": "CREATE INDEX entries_campaign ON entries (campaign, kind)",
    # REPLACE deletes without firing delete triggers, hence the look for a row of the same key.
    "entries_only_at_the_end": """CREATE TRIGGER entries_only_at_the_end BEFORE INSERT ON entries
WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM entries)
  OR NEW.prev IS NOT coalesce((SELECT hash FROM entries ORDER BY seq DESC LIMIT 1), printf('%064d', 0))
  OR EXISTS (SELECT 1 FROM entries WHERE kind = NEW.kind AND key = NEW.key)
BEGIN SELECT RAISE(ABORT, 'ledger: entries are only added at the end'); END""",
    "entries_no_update": "CREATE TRIGGER entries_no_update BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'ledger: entries are never changed'); END",
    "entries_no_delete": "CREATE TRIGGER entries_no_delete BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'ledger: entries are never deleted'); END",
}
"""Name -> statement, as `sqlite_master` gives it back."""
