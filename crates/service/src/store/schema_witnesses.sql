-- Version 7.
-- Small witnesses, sealed as those in files are.
CREATE TABLE witnesses (
    job     TEXT PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
    content BLOB NOT NULL
) STRICT;
