-- The keys in devices' TPMs (packages/proto/UPLINK.md, "Device keys"). The defaults are what edges have done with
-- devices whose control plane says nothing of keys, so that nothing changes for existing collections.
CREATE TYPE "KeyLearning" AS ENUM ('accept_first', 'approve');
CREATE TYPE "KeylessAccess" AS ENUM ('everything', 'shared', 'nothing');
CREATE TYPE "DeviceKeyLabel" AS ENUM
  ('key_known', 'key_waits', 'key_changed', 'key_missing', 'no_key', 'signature_invalid');

ALTER TABLE collection ADD COLUMN key_learn "KeyLearning" NOT NULL DEFAULT 'accept_first';
ALTER TABLE collection ADD COLUMN key_without "KeylessAccess" NOT NULL DEFAULT 'everything';

ALTER TABLE device ADD COLUMN key_sha256 BYTEA;
ALTER TABLE device ADD COLUMN keyless BOOLEAN NOT NULL DEFAULT false;
ALTER TABLE device ADD COLUMN key_revision INTEGER NOT NULL DEFAULT 0;
ALTER TABLE device ADD COLUMN key_decided_by_user_id UUID;
ALTER TABLE device ADD COLUMN key_decided_by_name TEXT;
ALTER TABLE device ADD COLUMN key_decided_at TIMESTAMPTZ(3);
ALTER TABLE device ADD COLUMN key_label "DeviceKeyLabel";
ALTER TABLE device ADD COLUMN key_claimed BYTEA;
ALTER TABLE device ADD COLUMN key_claim_boot_id UUID;
ALTER TABLE device ADD COLUMN key_claimed_at TIMESTAMPTZ(3);
ALTER TABLE device ADD CONSTRAINT device_key_is_one_state
  CHECK (NOT (keyless AND key_sha256 IS NOT NULL) AND octet_length(key_sha256) = 32 AND octet_length(key_claimed) = 32)
  NOT VALID;

-- not expand-only: devices are some ten thousand rows, and the index is made in milliseconds
CREATE INDEX device_organization_id_key_label_name_id_idx ON device (organization_id, key_label, name, id);

-- As in 20261123160000_wake_edges, and the policy.
SELECT wake_edges_on('collection',
  $$SELECT id, site_id, vdisk_id, boot_program_set, boot_menu_id, key_learn, key_without, deletion_id FROM %s$$,
  $$SELECT site_id FROM changed$$);

-- As in 20261123160000_wake_edges, and the key. Not where it last booted, nor how, nor what it claims.
SELECT wake_edges_on('device',
  $$SELECT id, site_id, collection_id, name, mac, enabled, boot_program_set, boot_menu_choice, boot_menu_id, tags, vdisk_id,
    device_type, home_edge_id, next_home_edge_id, key_sha256, keyless, key_revision, deletion_id FROM %s$$,
  $$SELECT site_id FROM changed$$);
