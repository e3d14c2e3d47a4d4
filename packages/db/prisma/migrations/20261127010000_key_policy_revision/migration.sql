-- As in 20261123040000_init, and the policy for keys: a change of it alone is one that somebody else must see before
-- they overwrite it.
CREATE OR REPLACE TRIGGER next_revision BEFORE UPDATE OF site_id, name, vdisk_id, boot_program_set, boot_menu_id,
  personality, template_device_id, key_learn, key_without, deletion_id ON collection
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION next_revision();
