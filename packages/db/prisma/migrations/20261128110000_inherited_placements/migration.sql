-- A placement that somebody has taken back: the row stays for its revision.
ALTER TABLE placement ADD COLUMN inherits BOOLEAN NOT NULL DEFAULT FALSE;
