-- Apart from the triggers, whose creation locks the tables for writes: this takes seconds for 100,000 devices. What is renamed
-- meanwhile may keep a key of its former name until it is renamed again.
INSERT INTO search_key SELECT device.organization_id, 'device', keys.rank, keys.key, device.id
FROM device, search_keys_of_device(device) AS keys WHERE deletion_id IS NULL ON CONFLICT DO NOTHING;
INSERT INTO search_key SELECT organization_id, 'site', keys.rank, keys.key, id
FROM site, search_keys_of_name(name) AS keys WHERE deletion_id IS NULL ON CONFLICT DO NOTHING;
INSERT INTO search_key SELECT organization_id, 'collection', keys.rank, keys.key, id
FROM collection, search_keys_of_name(name) AS keys WHERE deletion_id IS NULL ON CONFLICT DO NOTHING;
INSERT INTO search_key SELECT organization_id, 'edge', keys.rank, keys.key, id
FROM edge, search_keys_of_name(name) AS keys ON CONFLICT DO NOTHING;
INSERT INTO search_key SELECT organization_id, 'vdisk', keys.rank, keys.key, id
FROM vdisk, search_keys_of_name(name) AS keys WHERE deletion_id IS NULL ON CONFLICT DO NOTHING;
INSERT INTO search_key SELECT organization_id, 'version', 1, lower(label), id
FROM vdisk_version, unnest(labels) AS label WHERE deletion_id IS NULL ON CONFLICT DO NOTHING;
