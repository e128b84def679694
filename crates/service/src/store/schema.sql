-- Version 1. A later version is a file of its own, and nothing here changes any more.
CREATE TABLE keys (
    name       TEXT PRIMARY KEY,
    path       TEXT NOT NULL,
    hash       TEXT NOT NULL,
    bytes      INTEGER NOT NULL,
    variables  INTEGER NOT NULL,
    publics    INTEGER NOT NULL,
    domain     INTEGER NOT NULL,
    curve      TEXT NOT NULL,
    is_own     INTEGER NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE jobs (
    id            TEXT PRIMARY KEY,
    request       TEXT UNIQUE,
    digest        TEXT NOT NULL,
    key           TEXT NOT NULL REFERENCES keys (name),
    witness       TEXT NOT NULL,
    witness_bytes INTEGER NOT NULL,
    priority      INTEGER NOT NULL,
    rank          INTEGER NOT NULL,
    state         TEXT NOT NULL CHECK (state IN ('pending', 'running', 'done', 'failed', 'cancelled')),
    attempt       INTEGER NOT NULL DEFAULT 0,
    failures      INTEGER NOT NULL DEFAULT 0,
    not_before_ms INTEGER NOT NULL DEFAULT 0,
    avoid         TEXT,
    deadline_ms   INTEGER,
    created_ms    INTEGER NOT NULL,
    ended_ms      INTEGER,
    code          TEXT,
    reason        TEXT
) STRICT;
CREATE INDEX jobs_by_rank ON jobs (state, rank);
CREATE INDEX jobs_by_end ON jobs (ended_ms) WHERE ended_ms IS NOT NULL;
CREATE INDEX jobs_by_deadline ON jobs (deadline_ms) WHERE state = 'pending' AND deadline_ms IS NOT NULL;

CREATE TABLE attempts (
    job      TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    attempt  INTEGER NOT NULL,
    worker   TEXT NOT NULL,
    begun_ms INTEGER NOT NULL,
    ended_ms INTEGER,
    code     TEXT,
    reason   TEXT,
    PRIMARY KEY (job, attempt)
) STRICT, WITHOUT ROWID;

CREATE TABLE results (
    job     TEXT PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
    attempt INTEGER NOT NULL,
    proof   TEXT NOT NULL,
    publics TEXT NOT NULL,
    seconds REAL NOT NULL,
    device  TEXT NOT NULL,
    remark  TEXT
) STRICT;
