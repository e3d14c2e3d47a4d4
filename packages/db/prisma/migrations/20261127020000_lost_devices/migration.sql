-- Devices whose session is lost for good (packages/proto/UPLINK.md, `lost` of a boot report).
ALTER TABLE boot ADD COLUMN lost JSONB;
ALTER TABLE device ADD COLUMN last_boot_lost BOOLEAN NOT NULL DEFAULT false;

-- not expand-only: devices are some ten thousand rows, and the index is made in milliseconds
CREATE INDEX device_organization_id_last_boot_lost_name_id_idx ON device (organization_id, last_boot_lost, name, id);
