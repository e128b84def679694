-- Version 6.
-- The caller's span, as the header `traceparent` names it.
ALTER TABLE jobs ADD COLUMN traceparent TEXT;
