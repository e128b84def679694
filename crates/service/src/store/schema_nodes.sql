-- Version 5.
-- Programs that take jobs from this database. Times are those of the database's clock.
CREATE TABLE nodes (
    name       TEXT PRIMARY KEY,
    -- One start of that program: a later one of the same name takes its place.
    run        TEXT NOT NULL,
    version    TEXT NOT NULL,
    -- What it is at, as JSON.
    report     TEXT NOT NULL,
    started_ms INTEGER NOT NULL,
    seen_ms    INTEGER NOT NULL
) STRICT;
-- The run of the node that has a running job, and until when unless it is prolonged; NULL: for as long as the node lives.
ALTER TABLE jobs ADD COLUMN node TEXT;
ALTER TABLE jobs ADD COLUMN lease_until_ms INTEGER;
CREATE INDEX jobs_by_lease ON jobs (lease_until_ms) WHERE state = 'running';
-- What all nodes must agree on, such as what tells the installation's key from another one.
CREATE TABLE installation (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;
