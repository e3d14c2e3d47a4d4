-- What a boot's device is, and what its edge's store lies on: "Explore" groups boots by them. Earlier boots have none.
ALTER TABLE boot ADD COLUMN processors INTEGER;
ALTER TABLE boot ADD COLUMN memory_mib INTEGER;
ALTER TABLE boot ADD COLUMN network_card TEXT;
ALTER TABLE boot ADD COLUMN storage TEXT;
