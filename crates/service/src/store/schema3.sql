-- Version 3.
-- Who may call. Of a token's secret there is the hash alone.
CREATE TABLE tokens (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    role       TEXT NOT NULL CHECK (role IN ('read', 'submit', 'admin')),
    hash       TEXT NOT NULL,
    -- Jobs that it may have waiting and running, and times a minute that it may submit; NULL: any number.
    jobs       INTEGER,
    rate       INTEGER,
    created_ms INTEGER NOT NULL,
    revoked_ms INTEGER
) STRICT;
-- Whose the job is; NULL where the service asked for no token.
ALTER TABLE jobs ADD COLUMN token TEXT;
CREATE INDEX jobs_by_token ON jobs (token, created_ms) WHERE token IS NOT NULL;
CREATE INDEX jobs_open_by_token ON jobs (token) WHERE state IN ('pending', 'running');
