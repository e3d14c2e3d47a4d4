-- What a boot's device and edge measured of the network between them, and the device's segment: the network report
-- groups boots by them. Earlier boots have none.
ALTER TABLE boot ADD COLUMN segment TEXT;
ALTER TABLE boot ADD COLUMN network JSONB;
