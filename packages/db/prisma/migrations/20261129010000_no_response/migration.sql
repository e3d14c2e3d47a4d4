-- A value of an enumeration can be used by the transaction after the one that adds it.
ALTER TYPE "BootOutcome" ADD VALUE 'no_response' AFTER 'silent';
ALTER TABLE boot_rollup ADD COLUMN no_response_count INTEGER NOT NULL DEFAULT 0;
