-- What the page "Explore" groups boots by, and lists filter by: apps/api/src/explore. Boots from before have neither.
ALTER TABLE boot ADD COLUMN client_arch INTEGER;
ALTER TABLE boot ADD COLUMN is_cold BOOLEAN;
