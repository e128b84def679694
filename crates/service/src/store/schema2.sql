-- Version 2.
-- Whether the job is tried with no other in its worker's hand.
ALTER TABLE jobs ADD COLUMN alone INTEGER NOT NULL DEFAULT 0;
-- Seconds of the stages of a result, as JSON.
ALTER TABLE results ADD COLUMN times TEXT;
