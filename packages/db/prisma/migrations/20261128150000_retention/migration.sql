-- Which released versions of a vDisk stay, and when others leave the trash: docs/decisions/0072. Null: all stay.
ALTER TABLE vdisk ADD COLUMN kept_releases INTEGER;
ALTER TABLE vdisk ADD COLUMN retention_trash_days INTEGER NOT NULL DEFAULT 7;
CREATE TRIGGER next_revision_of_retention BEFORE UPDATE OF kept_releases, retention_trash_days ON vdisk
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION next_revision();

-- A person has said that it stays.
ALTER TABLE vdisk_version ADD COLUMN is_protected BOOLEAN NOT NULL DEFAULT FALSE;
CREATE TRIGGER next_revision_of_protection BEFORE UPDATE OF is_protected ON vdisk_version
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION next_revision();

-- Null: 30 days after the deletion.
ALTER TABLE deletion ADD COLUMN purge_at TIMESTAMPTZ(3);

CREATE FUNCTION organizations_with_retention() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT DISTINCT vdisk.organization_id FROM public.vdisk WHERE vdisk.kept_releases IS NOT NULL AND vdisk.deletion_id IS NULL
$$;
GRANT EXECUTE ON FUNCTION organizations_with_retention() TO bootfarm_api;

-- A version that something needs does not get into the trash alone, whoever deletes it and whatever they have read before:
-- the vDisk's row, and then the version's, are locked, and what needs versions takes one of the two in the triggers below.
CREATE FUNCTION refuse_needed_version() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  disk record;
  need text;
BEGIN
  SELECT override_version_id, pending_version_id, deletion_id INTO disk FROM public.vdisk
    WHERE organization_id = OLD.organization_id AND id = OLD.vdisk_id FOR NO KEY UPDATE;
  IF NOT FOUND OR disk.deletion_id IS NOT NULL THEN
    -- It goes with its vDisk.
    RETURN NEW;
  END IF;
  IF NEW.is_protected THEN
    need := 'it is protected';
  ELSIF disk.override_version_id = OLD.id THEN
    need := 'it is the override';
  ELSIF disk.pending_version_id = OLD.id THEN
    need := 'it is to be released';
  ELSIF EXISTS (SELECT FROM public.waiting_promotion AS waiting WHERE waiting.organization_id = OLD.organization_id
    AND waiting.version_id = OLD.id AND waiting.given_up_at IS NULL) THEN
    need := 'its promotion waits for edges';
  ELSIF EXISTS (SELECT FROM public.boot_menu_entry AS entry
    WHERE entry.organization_id = OLD.organization_id AND entry.version_id = OLD.id) THEN
    need := 'a boot menu starts it';
  ELSIF EXISTS (SELECT FROM public.vdisk_version AS child WHERE child.organization_id = OLD.organization_id
    AND child.vdisk_id = OLD.vdisk_id AND child.parent_version_id = OLD.id AND child.state = 'maintenance'
    AND child.sealed_at IS NULL AND child.deletion_id IS NULL) THEN
    need := 'the version in maintenance is based on it';
  END IF;
  IF need IS NOT NULL THEN
    RAISE EXCEPTION 'the version is needed: %', need USING ERRCODE = 'BF002';
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER refuse_needed_version BEFORE UPDATE OF deletion_id ON vdisk_version
  FOR EACH ROW WHEN (OLD.deletion_id IS NULL AND NEW.deletion_id IS NOT NULL) EXECUTE FUNCTION refuse_needed_version();

-- Nothing begins to need a version that is in the trash, or about to be: the version's row is locked.
CREATE FUNCTION require_live_version() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  needed uuid[];
  in_trash boolean;
  before text := coalesce(current_setting('bootfarm.trash', true), '');
BEGIN
  IF TG_TABLE_NAME = 'vdisk' THEN
    needed := ARRAY[
      CASE WHEN NEW.default_version_id IS DISTINCT FROM OLD.default_version_id THEN NEW.default_version_id END,
      CASE WHEN NEW.override_version_id IS DISTINCT FROM OLD.override_version_id THEN NEW.override_version_id END,
      CASE WHEN NEW.pending_version_id IS DISTINCT FROM OLD.pending_version_id THEN NEW.pending_version_id END];
  ELSIF TG_TABLE_NAME = 'vdisk_version' THEN
    needed := ARRAY[NEW.parent_version_id];
  ELSE
    needed := ARRAY[NEW.version_id];
  END IF;
  PERFORM set_config('bootfarm.trash', 'shown', true);
  SELECT bool_or(chosen.deletion_id IS NOT NULL) INTO in_trash FROM (
    SELECT deletion_id FROM public.vdisk_version
    WHERE organization_id = NEW.organization_id AND id = ANY (needed) ORDER BY id FOR SHARE) AS chosen;
  PERFORM set_config('bootfarm.trash', before, true);
  IF in_trash THEN
    RAISE EXCEPTION 'the version of this % is in the trash', TG_TABLE_NAME USING ERRCODE = 'BF001';
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER require_live_version BEFORE UPDATE OF default_version_id, override_version_id, pending_version_id ON vdisk
  FOR EACH ROW WHEN ((OLD.default_version_id, OLD.override_version_id, OLD.pending_version_id)
    IS DISTINCT FROM (NEW.default_version_id, NEW.override_version_id, NEW.pending_version_id))
  EXECUTE FUNCTION require_live_version();
CREATE TRIGGER require_live_version BEFORE INSERT OR UPDATE OF version_id ON boot_menu_entry
  FOR EACH ROW WHEN (NEW.version_id IS NOT NULL) EXECUTE FUNCTION require_live_version();
CREATE TRIGGER require_live_version BEFORE INSERT OR UPDATE OF version_id ON waiting_promotion
  FOR EACH ROW EXECUTE FUNCTION require_live_version();
CREATE TRIGGER require_live_version BEFORE INSERT ON vdisk_version
  FOR EACH ROW WHEN (NEW.state = 'maintenance' AND NEW.parent_version_id IS NOT NULL)
  EXECUTE FUNCTION require_live_version();
