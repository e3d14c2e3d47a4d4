-- outside of a transaction
-- Devices of which only the last boot itself says what it reads: none, once each has booted with this release.
CREATE INDEX CONCURRENTLY device_runs_unknown ON device (organization_id, last_boot_id) WHERE runs_boot_id IS DISTINCT FROM last_boot_id;
