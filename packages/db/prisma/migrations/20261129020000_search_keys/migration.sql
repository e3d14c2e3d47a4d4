-- What people type to find an object: docs/decisions/0089-search.md.
-- What a device's last boot told of it. Null until its next boot; an API of the release before writes neither.
ALTER TABLE device ADD COLUMN last_boot_ip TEXT, ADD COLUMN last_boot_machine_id UUID;

-- In lower case, by bytes: of an index only comparisons that leak nothing are used below row-level security, and neither
-- LIKE nor lower() is one.
CREATE TABLE search_key (
  organization_id UUID REFERENCES organization ON UPDATE CASCADE ON DELETE CASCADE,
  kind TEXT,
  -- 0: the whole of a name or an address; 1: a later word of a name, the end of an address, a tag or a label.
  rank SMALLINT,
  key TEXT COLLATE "C",
  object_id UUID,
  PRIMARY KEY (organization_id, kind, rank, key, object_id)
);
CREATE INDEX ON search_key (organization_id, object_id);
SELECT protect_tenant_table('search_key');

-- A name, and what begins at each of its later words: `vdi-004` and `004` of `lab-vdi-004`, `07` of `pc07`.
CREATE FUNCTION search_keys_of_name(name text) RETURNS TABLE (rank smallint, key text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT 0::smallint, lower(name)
  UNION SELECT 1::smallint, substr(lower(name), regexp_instr(lower(name), boundary, 1, word))
  FROM (VALUES ('(?<=[^[:alnum:]])[[:alnum:]]|(?<=[[:alpha:]])[[:digit:]]')) AS pattern (boundary),
    generate_series(1, least(6, regexp_count(lower(name), boundary))) AS word
$$;

CREATE FUNCTION search_keys_of_device(device device) RETURNS TABLE (rank smallint, key text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT * FROM public.search_keys_of_name(device.name)
  UNION SELECT 0::smallint, replace(device.mac, ':', '')
  UNION SELECT 1::smallint, substr(replace(device.mac, ':', ''), digit) FROM unnest(ARRAY[7, 9]) AS digit
  UNION SELECT 0::smallint, device.last_boot_ip WHERE device.last_boot_ip IS NOT NULL
  UNION SELECT 0::smallint, replace(device.last_boot_machine_id::text, '-', '') WHERE device.last_boot_machine_id IS NOT NULL
  UNION SELECT 1::smallint, lower(tag) FROM unnest(device.tags) AS tag
$$;

GRANT EXECUTE ON FUNCTION search_keys_of_name(text), search_keys_of_device(device) TO bootfarm_api;

-- What lies in the trash has no keys.
CREATE FUNCTION keep_search_keys() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    DELETE FROM public.search_key WHERE organization_id = OLD.organization_id AND object_id = OLD.id;
  END IF;
  IF TG_OP = 'DELETE' THEN
    RETURN NULL;
  ELSIF TG_TABLE_NAME = 'edge' THEN
    INSERT INTO public.search_key SELECT NEW.organization_id, 'edge', rank, key, NEW.id
    FROM public.search_keys_of_name(NEW.name) ON CONFLICT DO NOTHING;
  ELSIF NEW.deletion_id IS NOT NULL THEN
    RETURN NULL;
  ELSIF TG_TABLE_NAME = 'device' THEN
    INSERT INTO public.search_key SELECT NEW.organization_id, 'device', rank, key, NEW.id
    FROM public.search_keys_of_device(NEW) ON CONFLICT DO NOTHING;
  ELSIF TG_TABLE_NAME = 'vdisk_version' THEN
    INSERT INTO public.search_key SELECT NEW.organization_id, 'version', 1, lower(label), NEW.id
    FROM unnest(NEW.labels) AS label ON CONFLICT DO NOTHING;
  ELSE
    INSERT INTO public.search_key SELECT NEW.organization_id, TG_TABLE_NAME, rank, key, NEW.id
    FROM public.search_keys_of_name(NEW.name) ON CONFLICT DO NOTHING;
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER search_keys_new AFTER INSERT OR DELETE ON device FOR EACH ROW EXECUTE FUNCTION keep_search_keys();
CREATE TRIGGER search_keys_new AFTER INSERT OR DELETE ON site FOR EACH ROW EXECUTE FUNCTION keep_search_keys();
CREATE TRIGGER search_keys_new AFTER INSERT OR DELETE ON collection FOR EACH ROW EXECUTE FUNCTION keep_search_keys();
CREATE TRIGGER search_keys_new AFTER INSERT OR DELETE ON edge FOR EACH ROW EXECUTE FUNCTION keep_search_keys();
CREATE TRIGGER search_keys_new AFTER INSERT OR DELETE ON vdisk FOR EACH ROW EXECUTE FUNCTION keep_search_keys();
CREATE TRIGGER search_keys_new AFTER INSERT OR DELETE ON vdisk_version FOR EACH ROW EXECUTE FUNCTION keep_search_keys();
-- Boots write the rows of devices, and heartbeats those of edges, all the time: nothing is done unless a key changes.
CREATE TRIGGER search_keys_changed AFTER UPDATE OF name, mac, tags, deletion_id, last_boot_ip, last_boot_machine_id ON device
  FOR EACH ROW WHEN ((OLD.name, OLD.mac, OLD.tags, OLD.deletion_id, OLD.last_boot_ip, OLD.last_boot_machine_id)
    IS DISTINCT FROM (NEW.name, NEW.mac, NEW.tags, NEW.deletion_id, NEW.last_boot_ip, NEW.last_boot_machine_id))
  EXECUTE FUNCTION keep_search_keys();
CREATE TRIGGER search_keys_changed AFTER UPDATE OF name, deletion_id ON site
  FOR EACH ROW WHEN ((OLD.name, OLD.deletion_id) IS DISTINCT FROM (NEW.name, NEW.deletion_id)) EXECUTE FUNCTION keep_search_keys();
CREATE TRIGGER search_keys_changed AFTER UPDATE OF name, deletion_id ON collection
  FOR EACH ROW WHEN ((OLD.name, OLD.deletion_id) IS DISTINCT FROM (NEW.name, NEW.deletion_id)) EXECUTE FUNCTION keep_search_keys();
CREATE TRIGGER search_keys_changed AFTER UPDATE OF name ON edge
  FOR EACH ROW WHEN (OLD.name IS DISTINCT FROM NEW.name) EXECUTE FUNCTION keep_search_keys();
CREATE TRIGGER search_keys_changed AFTER UPDATE OF name, deletion_id ON vdisk
  FOR EACH ROW WHEN ((OLD.name, OLD.deletion_id) IS DISTINCT FROM (NEW.name, NEW.deletion_id)) EXECUTE FUNCTION keep_search_keys();
CREATE TRIGGER search_keys_changed AFTER UPDATE OF labels, deletion_id ON vdisk_version
  FOR EACH ROW WHEN ((OLD.labels, OLD.deletion_id) IS DISTINCT FROM (NEW.labels, NEW.deletion_id)) EXECUTE FUNCTION keep_search_keys();
