-- Version 4.
-- What the blob of a job is: a witness as it came; the same, sealed; sealed inputs, of which a witness is yet to be calculated; such a
-- witness, sealed.
ALTER TABLE jobs ADD COLUMN form TEXT NOT NULL DEFAULT 'plain' CHECK (form IN ('plain', 'witness', 'inputs', 'calculated'));
CREATE INDEX jobs_by_form ON jobs (form, rank) WHERE state = 'pending';
-- The batch that the job was submitted in, and its place and name there.
ALTER TABLE jobs ADD COLUMN batch TEXT;
ALTER TABLE jobs ADD COLUMN item INTEGER;
ALTER TABLE jobs ADD COLUMN item_name TEXT;
CREATE INDEX jobs_by_batch ON jobs (batch, item) WHERE batch IS NOT NULL;
-- What calculates the witness of a key's circuit.
CREATE TABLE programs (
    key        TEXT PRIMARY KEY REFERENCES keys (name) ON DELETE CASCADE,
    path       TEXT NOT NULL,
    hash       TEXT NOT NULL,
    bytes      INTEGER NOT NULL,
    is_own     INTEGER NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT;
