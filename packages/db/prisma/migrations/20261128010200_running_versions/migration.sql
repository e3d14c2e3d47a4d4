-- What a device's last boot reads, repeated at the device: thousands of devices are counted by version without their boots.
-- An API of the release before writes none of the three: they count only where `runs_boot_id` is the device's last boot.
ALTER TABLE device ADD COLUMN runs_boot_id UUID, ADD COLUMN runs_vdisk_id UUID, ADD COLUMN runs_version_id UUID;
