-- The whole schema of the first release: what prisma/schema says, and what Prisma has no word for.

-- Row-level security, the second wall between organizations: docs/decisions/0009-row-level-security.md.
-- The API signs in as a member of bootfarm_api, which owns nothing. What it sees is what belongs to the organization that the
-- setting `bootfarm.organization_id` of its transaction names; without it, nothing.
DO $$
BEGIN
  IF to_regrole('bootfarm_api') IS NULL THEN
    CREATE ROLE bootfarm_api NOLOGIN;
  END IF;
EXCEPTION
  -- Roles belong to the server, not to the database: another one has made it, or its administrator has.
  WHEN duplicate_object OR unique_violation THEN NULL;
END
$$;

-- Functions are for those they are granted to, all tables are covered, and who migrates is of no concern to the API.
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO bootfarm_api;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE ON SEQUENCES TO bootfarm_api;

REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO bootfarm_api;
DO $$
BEGIN
  IF to_regclass('public._prisma_migrations') IS NOT NULL THEN
    REVOKE ALL ON public._prisma_migrations FROM bootfarm_api;
  END IF;
END
$$;

-- Under row-level security an index serves a condition only if its operator is known to leak nothing of rows that the policy hides.
-- PostgreSQL does not say so of the equality of enums, which compares two numbers and nothing else. Only a superuser may say it; without,
-- filters by a boot's outcome read more than they have to.
DO $$
BEGIN
  ALTER FUNCTION pg_catalog.enum_eq(anyenum, anyenum) LEAKPROOF;
EXCEPTION WHEN insufficient_privilege THEN
  RAISE NOTICE 'Not a superuser: lists filtered by outcome will be slower.';
END
$$;

CREATE TYPE "BootOutcome" AS ENUM ('ready', 'failed', 'silent', 'superseded', 'local_disk');
CREATE TYPE "UnknownDevices" AS ENUM ('ignore', 'boot');
CREATE TYPE "Role" AS ENUM ('owner', 'admin', 'operator', 'image_manager', 'auditor', 'viewer');
CREATE TYPE "PowerOrderKind" AS ENUM ('power_off', 'restart');
CREATE TYPE "DiscoveryRequest" AS ENUM ('dhcp', 'tftp', 'http');
CREATE TYPE "Capture" AS ENUM ('never', 'failed', 'always');
CREATE TYPE "BootMenuChoice" AS ENUM ('collection', 'none', 'own');
CREATE TYPE "AuditActorKind" AS ENUM ('person', 'api_key', 'edge', 'system', 'platform');
CREATE TYPE "WebhookDeliveryState" AS ENUM ('pending', 'delivered', 'failed');
CREATE TYPE "RollupGrain" AS ENUM ('hour', 'day');
CREATE TYPE "ScheduleAction" AS ENUM ('power_on');
CREATE TYPE "SchedulePower" AS ENUM ('wake_on_lan', 'hook', 'both');
CREATE TYPE "ScheduleKind" AS ENUM ('once', 'cron');
CREATE TYPE "ScheduleTargetKind" AS ENUM ('device', 'collection', 'tag');
CREATE TYPE "ScheduleRunState" AS ENUM ('waiting', 'running', 'done', 'missed', 'stopped');
CREATE TYPE "ScheduleRunDeviceState" AS ENUM ('waiting', 'sent', 'booting', 'ready', 'failed', 'not_seen', 'skipped');
CREATE TYPE "DeviceType" AS ENUM ('production', 'test', 'maintenance');
CREATE TYPE "VersionState" AS ENUM ('maintenance', 'test', 'released');
CREATE TYPE "WriteCacheClass" AS ENUM ('device_ram', 'device_ram_overflow', 'device_ram_local_disk', 'edge', 'edge_persistent', 'private');
CREATE TYPE "WriteCacheFull" AS ENUM ('stop', 'read_only');
CREATE TYPE "EdgeVersionState" AS ENUM ('present', 'importing', 'damaged', 'missing');
CREATE TYPE "StoreJobKind" AS ENUM ('seal', 'merge', 'verify', 'gc', 'delete', 'import', 'drop_layer', 'clear_profile', 'release_home', 'adopt');
CREATE TYPE "StoreJobState" AS ENUM ('queued', 'running', 'done', 'failed', 'cancelled');
-- What a version that is imported or sealed boots with, where that is not taken from its disk.
CREATE TYPE "GivenBootFiles" AS ENUM ('parent', 'none');

CREATE TABLE "user" (
  id UUID PRIMARY KEY,
  name TEXT NOT NULL,
  email TEXT NOT NULL,
  email_verified BOOLEAN NOT NULL DEFAULT false,
  image TEXT,
  created_at TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at TIMESTAMPTZ(3) NOT NULL,
  is_platform_operator BOOLEAN NOT NULL DEFAULT false,
  two_factor_enabled BOOLEAN DEFAULT false,
  last_organization_id UUID,
  last_sign_in_at TIMESTAMPTZ(3)
);

CREATE TABLE session (
  id UUID PRIMARY KEY,
  token TEXT NOT NULL,
  user_id UUID NOT NULL,
  expires_at TIMESTAMPTZ(3) NOT NULL,
  ip_address TEXT,
  user_agent TEXT,
  created_at TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at TIMESTAMPTZ(3) NOT NULL,
  active_organization_id UUID,
  confirmed_at TIMESTAMPTZ(3),
  FOREIGN KEY (user_id) REFERENCES "user" ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE account (
  id UUID PRIMARY KEY,
  account_id TEXT NOT NULL,
  provider_id TEXT NOT NULL,
  user_id UUID NOT NULL,
  access_token TEXT,
  refresh_token TEXT,
  id_token TEXT,
  access_token_expires_at TIMESTAMPTZ(3),
  refresh_token_expires_at TIMESTAMPTZ(3),
  scope TEXT,
  password TEXT,
  created_at TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at TIMESTAMPTZ(3) NOT NULL,
  FOREIGN KEY (user_id) REFERENCES "user" ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE verification (
  id UUID PRIMARY KEY,
  identifier TEXT NOT NULL,
  value TEXT NOT NULL,
  expires_at TIMESTAMPTZ(3) NOT NULL,
  created_at TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at TIMESTAMPTZ(3) NOT NULL
);

CREATE TABLE organization (
  id UUID PRIMARY KEY,
  slug TEXT NOT NULL,
  name TEXT NOT NULL,
  state_incarnation INTEGER NOT NULL DEFAULT 1,
  created_at TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  delete_after TIMESTAMPTZ(3),
  revision INTEGER NOT NULL DEFAULT 1,
  suspended_at TIMESTAMPTZ(3),
  delete_asked_at TIMESTAMPTZ(3),
  delete_asked_by_user_id UUID,
  deleting_at TIMESTAMPTZ(3),
  founded_by_user_id UUID
);

-- Revisions, the trash, stores, and names with values: docs/decisions/0012-trash-by-row-security.md.
CREATE TABLE deletion (
  organization_id UUID,
  id UUID,
  kind TEXT NOT NULL,
  object_id UUID NOT NULL,
  object_name TEXT NOT NULL,
  farm_id UUID,
  site_id UUID,
  collection_id UUID,
  counts JSONB NOT NULL,
  deleted_at TIMESTAMPTZ(3) NOT NULL,
  deleted_by_user_id UUID,
  deleted_by_name TEXT NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organization ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE farm (
  organization_id UUID,
  id UUID,
  name TEXT NOT NULL,
  created_at TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  deletion_id UUID,
  revision INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organization ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, deletion_id) REFERENCES deletion ON UPDATE CASCADE ON DELETE RESTRICT
);

CREATE TABLE site (
  organization_id UUID,
  id UUID,
  farm_id UUID NOT NULL,
  name TEXT NOT NULL,
  time_zone TEXT NOT NULL,
  unknown_devices "UnknownDevices" NOT NULL DEFAULT 'ignore',
  created_at TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  boot_program_set TEXT,
  capture "Capture" NOT NULL DEFAULT 'failed',
  edge_key BYTEA,
  deletion_id UUID,
  revision INTEGER NOT NULL DEFAULT 1,
  personality JSONB NOT NULL DEFAULT '{}',
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, farm_id) REFERENCES farm ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, deletion_id) REFERENCES deletion ON UPDATE CASCADE ON DELETE RESTRICT
);

CREATE TABLE store (
  organization_id UUID,
  id UUID,
  farm_id UUID NOT NULL,
  name TEXT NOT NULL,
  note TEXT NOT NULL DEFAULT '',
  created_at TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  revision INTEGER NOT NULL DEFAULT 1,
  deletion_id UUID,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, farm_id) REFERENCES farm ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, deletion_id) REFERENCES deletion ON UPDATE CASCADE ON DELETE RESTRICT
);

CREATE TABLE vdisk (
  organization_id UUID,
  id UUID,
  farm_id UUID NOT NULL,
  name TEXT NOT NULL,
  created_at TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  deletion_id UUID,
  revision INTEGER NOT NULL DEFAULT 1,
  store_id UUID,
  note TEXT NOT NULL DEFAULT '',
  default_version_id UUID,
  override_version_id UUID,
  pending_version_id UUID,
  maintenance_device_id UUID,
  last_version_number INTEGER NOT NULL DEFAULT 0,
  write_cache "WriteCacheClass" NOT NULL DEFAULT 'device_ram',
  write_cache_limit_bytes BIGINT,
  write_cache_full "WriteCacheFull" NOT NULL DEFAULT 'stop',
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, farm_id) REFERENCES farm ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, store_id) REFERENCES store ON UPDATE CASCADE ON DELETE RESTRICT,
  FOREIGN KEY (organization_id, deletion_id) REFERENCES deletion ON UPDATE CASCADE ON DELETE RESTRICT
);

CREATE TABLE boot_menu (
  organization_id UUID,
  id UUID,
  farm_id UUID NOT NULL,
  name TEXT NOT NULL,
  timeout_ms INTEGER NOT NULL,
  default_position INTEGER NOT NULL,
  created_at TIMESTAMPTZ(3) NOT NULL,
  updated_at TIMESTAMPTZ(3) NOT NULL,
  deletion_id UUID,
  revision INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, farm_id) REFERENCES farm ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, deletion_id) REFERENCES deletion ON UPDATE CASCADE ON DELETE RESTRICT
);

CREATE TABLE collection (
  organization_id UUID,
  id UUID,
  site_id UUID NOT NULL,
  name TEXT NOT NULL,
  vdisk_id UUID,
  created_at TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  boot_program_set TEXT,
  boot_menu_id UUID,
  deletion_id UUID,
  revision INTEGER NOT NULL DEFAULT 1,
  personality JSONB NOT NULL DEFAULT '{}',
  template_device_id UUID,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, site_id) REFERENCES site ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, vdisk_id) REFERENCES vdisk ON UPDATE CASCADE ON DELETE RESTRICT,
  FOREIGN KEY (organization_id, boot_menu_id) REFERENCES boot_menu ON UPDATE CASCADE ON DELETE RESTRICT,
  FOREIGN KEY (organization_id, deletion_id) REFERENCES deletion ON UPDATE CASCADE ON DELETE RESTRICT
);

CREATE TABLE device (
  organization_id UUID,
  id UUID,
  site_id UUID NOT NULL,
  collection_id UUID NOT NULL,
  name TEXT NOT NULL,
  mac TEXT NOT NULL,
  enabled BOOLEAN NOT NULL DEFAULT true,
  created_at TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  last_boot_id UUID,
  last_boot_started_at TIMESTAMPTZ(3),
  last_boot_outcome "BootOutcome",
  last_boot_total_us BIGINT,
  last_boot_write_cache_percent INTEGER,
  boot_program_set TEXT,
  boot_menu_choice "BootMenuChoice" NOT NULL DEFAULT 'collection',
  boot_menu_id UUID,
  tags TEXT[] NOT NULL DEFAULT ARRAY[]::TEXT[],
  deletion_id UUID,
  revision INTEGER NOT NULL DEFAULT 1,
  personality JSONB NOT NULL DEFAULT '{}',
  vdisk_id UUID,
  device_type "DeviceType" NOT NULL DEFAULT 'production',
  layer_class "WriteCacheClass",
  layer_edge_id UUID,
  layer_version_id UUID,
  layer_bytes BIGINT,
  -- The one edge that keeps what the device writes, and the one that is to do so next.
  home_edge_id UUID,
  next_home_edge_id UUID,
  -- Since when an edge is the one that keeps what the device writes; null: since before this was kept.
  home_since TIMESTAMPTZ(3),
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, site_id) REFERENCES site ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, collection_id) REFERENCES collection ON UPDATE CASCADE ON DELETE RESTRICT,
  FOREIGN KEY (organization_id, boot_menu_id) REFERENCES boot_menu ON UPDATE CASCADE ON DELETE RESTRICT,
  FOREIGN KEY (organization_id, vdisk_id) REFERENCES vdisk ON UPDATE CASCADE ON DELETE RESTRICT,
  FOREIGN KEY (organization_id, deletion_id) REFERENCES deletion ON UPDATE CASCADE ON DELETE RESTRICT
);

CREATE TABLE power_on (
  organization_id UUID,
  id UUID,
  device_id UUID NOT NULL,
  requested_by_user_id UUID,
  requested_at TIMESTAMPTZ(3) NOT NULL,
  expires_at TIMESTAMPTZ(3) NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, device_id) REFERENCES device ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE edge (
  organization_id UUID,
  id UUID,
  site_id UUID NOT NULL,
  name TEXT NOT NULL,
  public_key TEXT NOT NULL,
  arch TEXT NOT NULL,
  agent_version TEXT NOT NULL,
  enrolled_at TIMESTAMPTZ(3) NOT NULL,
  revoked_at TIMESTAMPTZ(3),
  boot_epoch BIGINT NOT NULL DEFAULT 0,
  heartbeat_epoch BIGINT NOT NULL DEFAULT 0,
  heartbeat_counter BIGINT NOT NULL DEFAULT 0,
  heartbeat_at TIMESTAMPTZ(3),
  heartbeat JSONB,
  clock_offset_ms BIGINT,
  draining BOOLEAN NOT NULL DEFAULT false,
  subnets TEXT[],
  weight INTEGER NOT NULL DEFAULT 10,
  revision INTEGER NOT NULL DEFAULT 1,
  silence_told_at TIMESTAMPTZ(3),
  rotate_key_from TEXT,
  key_rotated_at TIMESTAMPTZ(3),
  refused_code TEXT,
  refused_version INTEGER,
  refused_at TIMESTAMPTZ(3),
  store_epoch BIGINT NOT NULL DEFAULT 0,
  store_counter BIGINT NOT NULL DEFAULT 0,
  store_reported_at TIMESTAMPTZ(3),
  store_facts JSONB,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, site_id) REFERENCES site ON UPDATE CASCADE ON DELETE RESTRICT
);

CREATE TABLE join_token (
  organization_id UUID,
  id UUID,
  site_id UUID NOT NULL,
  token_hash TEXT NOT NULL,
  created_by_user_id UUID,
  created_at TIMESTAMPTZ(3) NOT NULL,
  expires_at TIMESTAMPTZ(3) NOT NULL,
  used_at TIMESTAMPTZ(3),
  edge_id UUID,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, site_id) REFERENCES site ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, edge_id) REFERENCES edge ON UPDATE CASCADE ON DELETE RESTRICT
);

CREATE TABLE signing_key (
  organization_id UUID,
  id UUID,
  public_key TEXT NOT NULL,
  seed BYTEA NOT NULL,
  created_at TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  previous_key TEXT,
  statement TEXT,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organization ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE desired_state (
  organization_id UUID,
  edge_id UUID,
  incarnation INTEGER NOT NULL,
  counter BIGINT NOT NULL,
  content_hash TEXT NOT NULL,
  payload TEXT NOT NULL,
  signature TEXT NOT NULL,
  signing_key_id UUID NOT NULL,
  issued_at TIMESTAMPTZ(3) NOT NULL,
  -- When the edge first asked for what follows this state: that it has taken it. Null until then.
  acknowledged_at TIMESTAMPTZ(3),
  PRIMARY KEY (organization_id, edge_id),
  FOREIGN KEY (organization_id, edge_id) REFERENCES edge ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, signing_key_id) REFERENCES signing_key ON UPDATE CASCADE ON DELETE RESTRICT
);

CREATE TABLE report_cursor (
  organization_id UUID,
  edge_id UUID,
  boot_epoch BIGINT,
  acked_seq BIGINT NOT NULL DEFAULT 0,
  lost_count BIGINT NOT NULL DEFAULT 0,
  updated_at TIMESTAMPTZ(3) NOT NULL,
  PRIMARY KEY (organization_id, edge_id, boot_epoch),
  FOREIGN KEY (organization_id, edge_id) REFERENCES edge ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE membership (
  organization_id UUID,
  user_id UUID,
  role "Role",
  created_at TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  revision INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (organization_id, user_id),
  FOREIGN KEY (organization_id) REFERENCES organization ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (user_id) REFERENCES "user" ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE boot_feed (
  organization_id UUID PRIMARY KEY,
  last_change BIGINT NOT NULL DEFAULT 0,
  FOREIGN KEY (organization_id) REFERENCES organization ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE vdisk_version (
  organization_id UUID,
  id UUID,
  vdisk_id UUID NOT NULL,
  number INTEGER NOT NULL,
  size_bytes BIGINT NOT NULL,
  disk_path TEXT NOT NULL,
  kernel_path TEXT,
  initrd_path TEXT,
  command_line TEXT NOT NULL,
  created_at TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  deletion_id UUID,
  revision INTEGER NOT NULL DEFAULT 1,
  note TEXT NOT NULL DEFAULT '',
  labels TEXT[] NOT NULL DEFAULT ARRAY[]::TEXT[],
  state "VersionState" NOT NULL DEFAULT 'released',
  released_at TIMESTAMPTZ(3),
  parent_version_id UUID,
  sealed_at TIMESTAMPTZ(3) DEFAULT CURRENT_TIMESTAMP,
  seal_asked_at TIMESTAMPTZ(3),
  manifest_root BYTEA,
  manifest_counter BIGINT,
  "kernel_sha256" TEXT,
  kernel_size_bytes BIGINT,
  "initrd_sha256" TEXT,
  initrd_size_bytes BIGINT,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, vdisk_id) REFERENCES vdisk ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, deletion_id) REFERENCES deletion ON UPDATE CASCADE ON DELETE RESTRICT
);

CREATE TABLE boot_key (
  organization_id UUID,
  boot_id UUID,
  received_on DATE NOT NULL,
  change BIGINT NOT NULL,
  PRIMARY KEY (organization_id, boot_id),
  FOREIGN KEY (organization_id) REFERENCES organization ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE power_order (
  organization_id UUID,
  id UUID,
  device_id UUID NOT NULL,
  "order" "PowerOrderKind" NOT NULL,
  requested_by_user_id UUID,
  requested_at TIMESTAMPTZ(3) NOT NULL,
  expires_at TIMESTAMPTZ(3) NOT NULL,
  taken_at TIMESTAMPTZ(3),
  taken_boot_id UUID,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, device_id) REFERENCES device ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, taken_boot_id) REFERENCES boot_key ON UPDATE CASCADE ON DELETE RESTRICT
);

CREATE TABLE withdrawn_boot (
  organization_id UUID,
  boot_id UUID,
  edge_id UUID NOT NULL,
  to_edge_id UUID,
  withdrawn_at TIMESTAMPTZ(3) NOT NULL,
  change BIGINT NOT NULL,
  PRIMARY KEY (organization_id, boot_id),
  FOREIGN KEY (organization_id, edge_id) REFERENCES edge ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE discovered_device (
  organization_id UUID,
  id UUID,
  site_id UUID NOT NULL,
  edge_id UUID NOT NULL,
  mac TEXT NOT NULL,
  machine_id UUID,
  vendor_class TEXT,
  user_class TEXT,
  host_name TEXT,
  client_arch INTEGER,
  ip TEXT,
  relay TEXT,
  asked "DiscoveryRequest" NOT NULL,
  first_seen_at TIMESTAMPTZ(3) NOT NULL,
  last_seen_at TIMESTAMPTZ(3) NOT NULL,
  requests BIGINT NOT NULL,
  ignored_at TIMESTAMPTZ(3),
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, site_id) REFERENCES site ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, edge_id) REFERENCES edge ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE adoption_rule (
  organization_id UUID,
  id UUID,
  site_id UUID NOT NULL,
  position INTEGER NOT NULL,
  mac_prefix TEXT,
  vendor_class_prefix TEXT,
  vendor_class_contains TEXT,
  architecture TEXT,
  relay_network TEXT,
  name_pattern TEXT,
  collection_id UUID,
  template_device_id UUID,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, site_id) REFERENCES site ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, collection_id) REFERENCES collection ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, template_device_id) REFERENCES device ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE boot_menu_entry (
  organization_id UUID,
  menu_id UUID,
  position INTEGER,
  title TEXT NOT NULL,
  vdisk_id UUID,
  version_id UUID,
  PRIMARY KEY (organization_id, menu_id, position),
  FOREIGN KEY (organization_id, menu_id) REFERENCES boot_menu ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, vdisk_id) REFERENCES vdisk ON UPDATE CASCADE ON DELETE RESTRICT,
  FOREIGN KEY (organization_id, version_id) REFERENCES vdisk_version ON UPDATE CASCADE ON DELETE RESTRICT
);

CREATE TABLE boot_capture (
  organization_id UUID,
  boot_id UUID,
  site_id UUID NOT NULL,
  received_at TIMESTAMPTZ(3) NOT NULL,
  packet_count INTEGER NOT NULL,
  size_bytes INTEGER NOT NULL,
  pcap BYTEA NOT NULL,
  PRIMARY KEY (organization_id, boot_id),
  FOREIGN KEY (organization_id, site_id) REFERENCES site ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, boot_id) REFERENCES boot_key ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE role_grant (
  organization_id UUID,
  id UUID,
  user_id UUID NOT NULL,
  role "Role" NOT NULL,
  farm_id UUID,
  site_id UUID,
  collection_id UUID,
  created_at TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  granted_by_user_id UUID,
  PRIMARY KEY (organization_id, id),
  -- A role holds in one place, and is granted there once.
  CONSTRAINT role_grant_one_scope CHECK (num_nonnulls(farm_id, site_id, collection_id) <= 1),
  FOREIGN KEY (organization_id, user_id) REFERENCES membership ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, farm_id) REFERENCES farm ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, site_id) REFERENCES site ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, collection_id) REFERENCES collection ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE audit_entry (
  organization_id UUID,
  id UUID,
  at TIMESTAMPTZ(3) NOT NULL,
  actor_kind "AuditActorKind" NOT NULL,
  actor_id UUID,
  actor_name TEXT NOT NULL,
  action TEXT NOT NULL,
  object_kind TEXT NOT NULL,
  object_id UUID,
  object_name TEXT,
  farm_id UUID,
  site_id UUID,
  collection_id UUID,
  before JSONB,
  after JSONB,
  address TEXT,
  request_id TEXT,
  PRIMARY KEY (organization_id, id)
);

CREATE TABLE two_factor (
  id UUID PRIMARY KEY,
  secret TEXT NOT NULL,
  backup_codes TEXT NOT NULL,
  user_id UUID NOT NULL,
  verified BOOLEAN DEFAULT true,
  failed_verification_count INTEGER DEFAULT 0,
  locked_until TIMESTAMPTZ(3),
  FOREIGN KEY (user_id) REFERENCES "user" ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE rate_limit (
  id UUID PRIMARY KEY,
  key TEXT NOT NULL,
  count INTEGER NOT NULL,
  last_request BIGINT NOT NULL
);

CREATE TABLE setup_link (
  id UUID PRIMARY KEY,
  token_hash TEXT NOT NULL,
  created_at TIMESTAMPTZ(3) NOT NULL,
  expires_at TIMESTAMPTZ(3) NOT NULL,
  used_at TIMESTAMPTZ(3)
);

CREATE TABLE job_state (
  name TEXT PRIMARY KEY,
  last_succeeded_at TIMESTAMPTZ(3),
  last_failed_at TIMESTAMPTZ(3),
  failure_count INTEGER NOT NULL DEFAULT 0,
  last_failure_code TEXT,
  failed_organization_count INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE invitation (
  organization_id UUID,
  id UUID,
  email TEXT NOT NULL,
  role "Role" NOT NULL,
  farm_id UUID,
  site_id UUID,
  collection_id UUID,
  token_hash TEXT NOT NULL,
  created_at TIMESTAMPTZ(3) NOT NULL,
  expires_at TIMESTAMPTZ(3) NOT NULL,
  invited_by_user_id UUID,
  invited_by_name TEXT NOT NULL,
  sent_at TIMESTAMPTZ(3),
  accepted_at TIMESTAMPTZ(3),
  accepted_by_user_id UUID,
  revoked_at TIMESTAMPTZ(3),
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organization ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, farm_id) REFERENCES farm ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, site_id) REFERENCES site ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, collection_id) REFERENCES collection ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE organization_quota (
  organization_id UUID,
  name TEXT,
  count_max INTEGER NOT NULL,
  PRIMARY KEY (organization_id, name),
  FOREIGN KEY (organization_id) REFERENCES organization ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE api_key (
  organization_id UUID,
  id UUID,
  name TEXT NOT NULL,
  prefix TEXT NOT NULL,
  secret_hash TEXT NOT NULL,
  role "Role" NOT NULL,
  farm_id UUID,
  site_id UUID,
  collection_id UUID,
  permissions TEXT[],
  requests_per_minute INTEGER NOT NULL DEFAULT 600,
  created_at TIMESTAMPTZ(3) NOT NULL,
  created_by_user_id UUID,
  expires_at TIMESTAMPTZ(3),
  revoked_at TIMESTAMPTZ(3),
  last_used_at TIMESTAMPTZ(3),
  PRIMARY KEY (organization_id, id),
  CONSTRAINT api_key_one_place CHECK (num_nonnulls(farm_id, site_id, collection_id) <= 1),
  FOREIGN KEY (organization_id) REFERENCES organization ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, farm_id) REFERENCES farm ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, site_id) REFERENCES site ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, collection_id) REFERENCES collection ON UPDATE CASCADE ON DELETE CASCADE
);

-- Counts are worth nothing after a crash: unlogged, so that counting a request costs no write to the log.
CREATE UNLOGGED TABLE api_key_window (
  organization_id UUID,
  api_key_id UUID,
  started_at TIMESTAMPTZ(3) NOT NULL,
  requests INTEGER NOT NULL,
  PRIMARY KEY (organization_id, api_key_id),
  FOREIGN KEY (organization_id, api_key_id) REFERENCES api_key ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE idempotent_request (
  organization_id UUID,
  caller_id UUID,
  key_hash TEXT,
  request_hash TEXT NOT NULL,
  answer BYTEA,
  created_at TIMESTAMPTZ(3) NOT NULL,
  PRIMARY KEY (organization_id, caller_id, key_hash),
  FOREIGN KEY (organization_id) REFERENCES organization ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE webhook_endpoint (
  organization_id UUID,
  id UUID,
  name TEXT NOT NULL,
  url TEXT NOT NULL,
  events TEXT[],
  secret BYTEA NOT NULL,
  previous_secret BYTEA,
  previous_secret_until TIMESTAMPTZ(3),
  enabled BOOLEAN NOT NULL DEFAULT true,
  disabled_reason TEXT,
  failing_since TIMESTAMPTZ(3),
  revision INTEGER NOT NULL DEFAULT 1,
  created_at TIMESTAMPTZ(3) NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organization ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE webhook_event (
  organization_id UUID,
  id UUID,
  type TEXT NOT NULL,
  subject TEXT NOT NULL,
  payload JSONB NOT NULL,
  created_at TIMESTAMPTZ(3) NOT NULL,
  -- W3C Trace Context of what the event came of; null where nobody collects traces.
  traceparent TEXT,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organization ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE webhook_delivery (
  organization_id UUID,
  id UUID,
  endpoint_id UUID NOT NULL,
  event_id UUID NOT NULL,
  state "WebhookDeliveryState" NOT NULL DEFAULT 'pending',
  attempt_count INTEGER NOT NULL DEFAULT 0,
  due_at TIMESTAMPTZ(3) NOT NULL,
  created_at TIMESTAMPTZ(3) NOT NULL,
  attempts JSONB NOT NULL DEFAULT '[]',
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, endpoint_id) REFERENCES webhook_endpoint ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, event_id) REFERENCES webhook_event ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE boot_day (
  organization_id UUID,
  received_on DATE,
  earliest_started_at TIMESTAMPTZ(3) NOT NULL,
  PRIMARY KEY (organization_id, received_on),
  FOREIGN KEY (organization_id) REFERENCES organization ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE boot (
  organization_id UUID,
  id UUID,
  received_on DATE,
  edge_id UUID NOT NULL,
  site_id UUID NOT NULL,
  device_id UUID,
  mac TEXT NOT NULL,
  revision BIGINT NOT NULL,
  started_at TIMESTAMPTZ(3) NOT NULL,
  received_at TIMESTAMPTZ(3) NOT NULL,
  updated_at TIMESTAMPTZ(3) NOT NULL,
  outcome "BootOutcome",
  failed_phase TEXT,
  failed_cause TEXT,
  failed_text TEXT,
  last_phase TEXT,
  total_us BIGINT NOT NULL,
  bytes_out BIGINT NOT NULL,
  retries BIGINT NOT NULL,
  simulated BOOLEAN NOT NULL,
  generated BOOLEAN NOT NULL,
  vdisk_id UUID,
  version_id UUID,
  menu_entry TEXT,
  phases JSONB NOT NULL,
  write_cache_used_bytes BIGINT,
  write_cache_size_bytes BIGINT,
  write_cache_held JSONB,
  silent_since TIMESTAMPTZ(3),
  PRIMARY KEY (organization_id, id, received_on)
) PARTITION BY RANGE (received_on);

CREATE TABLE boot_detail (
  organization_id UUID,
  boot_id UUID,
  received_on DATE,
  phases JSONB NOT NULL,
  facts JSONB NOT NULL,
  guest JSONB,
  PRIMARY KEY (organization_id, boot_id, received_on)
) PARTITION BY RANGE (received_on);

CREATE TABLE boot_rollup (
  organization_id UUID,
  site_id UUID,
  grain "RollupGrain",
  starts_at TIMESTAMPTZ(3),
  booting_count INTEGER NOT NULL DEFAULT 0,
  ready_count INTEGER NOT NULL DEFAULT 0,
  failed_count INTEGER NOT NULL DEFAULT 0,
  silent_count INTEGER NOT NULL DEFAULT 0,
  superseded_count INTEGER NOT NULL DEFAULT 0,
  local_disk_count INTEGER NOT NULL DEFAULT 0,
  generated_count INTEGER NOT NULL DEFAULT 0,
  total_us_sum BIGINT NOT NULL DEFAULT 0,
  total_us_buckets JSONB NOT NULL DEFAULT '{}',
  phases JSONB NOT NULL DEFAULT '{}',
  PRIMARY KEY (organization_id, site_id, grain, starts_at),
  FOREIGN KEY (organization_id, site_id) REFERENCES site ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE edge_key (
  organization_id UUID,
  edge_id UUID,
  public_key TEXT,
  previous_key TEXT NOT NULL,
  signature TEXT NOT NULL,
  rotated_at TIMESTAMPTZ(3) NOT NULL,
  PRIMARY KEY (organization_id, edge_id, public_key),
  FOREIGN KEY (organization_id, edge_id) REFERENCES edge ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE schedule (
  organization_id UUID,
  id UUID,
  farm_id UUID NOT NULL,
  site_id UUID,
  name TEXT NOT NULL,
  enabled BOOLEAN NOT NULL DEFAULT true,
  action "ScheduleAction" NOT NULL DEFAULT 'power_on',
  power "SchedulePower" NOT NULL DEFAULT 'wake_on_lan',
  rate_per_minute INTEGER NOT NULL,
  kind "ScheduleKind" NOT NULL,
  once_at TIMESTAMPTZ(3),
  cron TEXT,
  time_zone TEXT NOT NULL,
  instants TIMESTAMPTZ(3)[] NOT NULL DEFAULT ARRAY[]::TIMESTAMPTZ(3)[],
  renew_at TIMESTAMPTZ(3),
  prepared_until TIMESTAMPTZ(3) NOT NULL,
  revision INTEGER NOT NULL DEFAULT 1,
  created_at TIMESTAMPTZ(3) NOT NULL,
  updated_at TIMESTAMPTZ(3) NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, farm_id) REFERENCES farm ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, site_id) REFERENCES site ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE schedule_target (
  organization_id UUID,
  schedule_id UUID,
  position INTEGER,
  kind "ScheduleTargetKind" NOT NULL,
  device_id UUID,
  collection_id UUID,
  tag TEXT,
  PRIMARY KEY (organization_id, schedule_id, position),
  -- A target is one thing.
  CONSTRAINT schedule_target_one CHECK (num_nonnulls(device_id, collection_id, tag) = 1),
  FOREIGN KEY (organization_id, schedule_id) REFERENCES schedule ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, device_id) REFERENCES device ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, collection_id) REFERENCES collection ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE schedule_run (
  organization_id UUID,
  id UUID,
  schedule_id UUID NOT NULL,
  instant TIMESTAMPTZ(3) NOT NULL,
  state "ScheduleRunState" NOT NULL DEFAULT 'waiting',
  reason TEXT,
  requested_by_user_id UUID,
  action "ScheduleAction" NOT NULL,
  power "SchedulePower" NOT NULL,
  rate_per_minute INTEGER NOT NULL,
  started_at TIMESTAMPTZ(3),
  ended_at TIMESTAMPTZ(3),
  closes_at TIMESTAMPTZ(3) NOT NULL,
  closed_at TIMESTAMPTZ(3),
  device_count INTEGER NOT NULL,
  waiting_count INTEGER NOT NULL DEFAULT 0,
  sent_count INTEGER NOT NULL DEFAULT 0,
  booting_count INTEGER NOT NULL DEFAULT 0,
  ready_count INTEGER NOT NULL DEFAULT 0,
  failed_count INTEGER NOT NULL DEFAULT 0,
  not_seen_count INTEGER NOT NULL DEFAULT 0,
  skipped_count INTEGER NOT NULL DEFAULT 0,
  created_at TIMESTAMPTZ(3) NOT NULL,
  told_at TIMESTAMPTZ(3),
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, schedule_id) REFERENCES schedule ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE schedule_run_device (
  organization_id UUID,
  run_id UUID,
  device_id UUID,
  position INTEGER NOT NULL,
  state "ScheduleRunDeviceState" NOT NULL DEFAULT 'waiting',
  reason TEXT,
  text TEXT,
  edge_id UUID,
  sent_at TIMESTAMPTZ(3),
  boot_id UUID,
  PRIMARY KEY (organization_id, run_id, device_id),
  FOREIGN KEY (organization_id, run_id) REFERENCES schedule_run ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, device_id) REFERENCES device ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE report_gap (
  organization_id UUID,
  edge_id UUID,
  boot_epoch BIGINT,
  from_seq BIGINT,
  until_seq BIGINT NOT NULL,
  reason TEXT NOT NULL,
  from_at TIMESTAMPTZ(3),
  until_at TIMESTAMPTZ(3),
  declared_at TIMESTAMPTZ(3) NOT NULL,
  PRIMARY KEY (organization_id, edge_id, boot_epoch, from_seq),
  FOREIGN KEY (organization_id, edge_id) REFERENCES edge ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE sign_up_link (
  id UUID PRIMARY KEY,
  email TEXT NOT NULL,
  token_hash TEXT NOT NULL,
  created_at TIMESTAMPTZ(3) NOT NULL,
  expires_at TIMESTAMPTZ(3) NOT NULL
);

CREATE TABLE platform_event (
  id UUID PRIMARY KEY,
  at TIMESTAMPTZ(3) NOT NULL,
  actor_user_id UUID,
  action TEXT NOT NULL,
  subject_id UUID,
  before JSONB,
  after JSONB
);

-- How long entries of the audit log are kept: for ever without a row. The owner's command alone writes it; the API's role asks for
-- the removal of what is older, and has no say in what that is: docs/decisions/0013-audit-retention.md.
CREATE TABLE audit_retention (
  id BOOLEAN PRIMARY KEY DEFAULT true,
  days INTEGER NOT NULL,
  set_at TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CONSTRAINT audit_retention_one_row CHECK (id),
  CONSTRAINT audit_retention_days CHECK ((days >= 30) AND (days <= 36500))
);

CREATE TABLE edge_version (
  organization_id UUID,
  edge_id UUID,
  version_id UUID,
  state "EdgeVersionState" NOT NULL,
  root BYTEA,
  is_layer BOOLEAN NOT NULL DEFAULT false,
  own_bytes BIGINT NOT NULL,
  shared_bytes BIGINT NOT NULL,
  reclaimable_bytes BIGINT NOT NULL,
  checked_at TIMESTAMPTZ(3),
  reported_at TIMESTAMPTZ(3) NOT NULL,
  scan BIGINT NOT NULL,
  is_written BOOLEAN,
  boot_profiles JSONB,
  PRIMARY KEY (organization_id, edge_id, version_id),
  FOREIGN KEY (organization_id, edge_id) REFERENCES edge ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, version_id) REFERENCES vdisk_version ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE store_job (
  organization_id UUID,
  id UUID,
  edge_id UUID NOT NULL,
  kind "StoreJobKind" NOT NULL,
  state "StoreJobState" NOT NULL DEFAULT 'queued',
  vdisk_id UUID,
  version_id UUID,
  into_version_id UUID,
  source_path TEXT,
  progress_bytes BIGINT NOT NULL DEFAULT 0,
  total_bytes BIGINT NOT NULL DEFAULT 0,
  message TEXT,
  asked_by_user_id UUID,
  asked_by_name TEXT NOT NULL,
  asked_at TIMESTAMPTZ(3) NOT NULL,
  started_at TIMESTAMPTZ(3),
  ended_at TIMESTAMPTZ(3),
  boot_files "GivenBootFiles",
  device_id UUID,
  layer_class "WriteCacheClass",
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, edge_id) REFERENCES edge ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE TABLE edge_image (
  organization_id UUID,
  edge_id UUID,
  version_id UUID,
  state "EdgeVersionState" NOT NULL,
  root BYTEA,
  name TEXT NOT NULL DEFAULT '',
  size_bytes BIGINT,
  made_at TIMESTAMPTZ(3),
  has_kernel BOOLEAN NOT NULL DEFAULT false,
  made_for_id UUID,
  parent_version_id UUID,
  own_bytes BIGINT NOT NULL,
  shared_bytes BIGINT NOT NULL,
  reclaimable_bytes BIGINT NOT NULL,
  reported_at TIMESTAMPTZ(3) NOT NULL,
  scan BIGINT NOT NULL,
  PRIMARY KEY (organization_id, edge_id, version_id),
  FOREIGN KEY (organization_id, edge_id) REFERENCES edge ON UPDATE CASCADE ON DELETE CASCADE
);

-- Devices that asked another edge of their site to go on and were sent back, since the edge that was gone has what they wrote.
CREATE TABLE boot_wait (
  organization_id UUID,
  boot_id UUID,
  site_id UUID NOT NULL,
  mac TEXT NOT NULL,
  edge_id UUID NOT NULL,
  asked_edge_id UUID NOT NULL,
  started_at TIMESTAMPTZ(3) NOT NULL,
  waits_since TIMESTAMPTZ(3) NOT NULL,
  asked_us BIGINT NOT NULL,
  resumed_us BIGINT,
  received_at TIMESTAMPTZ(3) NOT NULL,
  PRIMARY KEY (organization_id, boot_id),
  FOREIGN KEY (organization_id, edge_id) REFERENCES edge ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, asked_edge_id) REFERENCES edge ON UPDATE CASCADE ON DELETE CASCADE
);

CREATE UNIQUE INDEX user_email_key ON "user" (email);
CREATE UNIQUE INDEX session_token_key ON session (token);
CREATE INDEX ON session (user_id);
CREATE INDEX ON account (user_id);
CREATE UNIQUE INDEX account_provider_id_account_id_key ON account (provider_id, account_id);
CREATE INDEX ON verification (identifier);
CREATE INDEX ON device (organization_id, name, id);
CREATE INDEX ON device (organization_id, collection_id, name, id);
CREATE INDEX ON device (organization_id, last_boot_outcome, name, id);
CREATE INDEX ON device (organization_id, last_boot_write_cache_percent);
CREATE INDEX ON device (organization_id, boot_menu_id);
CREATE INDEX ON device USING gin (tags);
CREATE UNIQUE INDEX device_organization_id_site_id_mac_deletion_id_key
  ON device (organization_id, site_id, mac, deletion_id) NULLS NOT DISTINCT;
CREATE INDEX ON device (organization_id, vdisk_id);
CREATE INDEX ON device (organization_id, layer_version_id);
CREATE INDEX ON power_on (organization_id, expires_at);
CREATE INDEX ON power_on (organization_id, device_id, requested_at);
CREATE UNIQUE INDEX edge_id_key ON edge (id);
CREATE UNIQUE INDEX edge_public_key_key ON edge (public_key);
CREATE INDEX ON edge (organization_id, name, id);
CREATE INDEX ON edge (organization_id, site_id);
CREATE UNIQUE INDEX join_token_token_hash_key ON join_token (token_hash);
CREATE UNIQUE INDEX farm_organization_id_name_deletion_id_key
  ON farm (organization_id, name, deletion_id) NULLS NOT DISTINCT;
CREATE INDEX ON site (organization_id, name, id);
CREATE UNIQUE INDEX site_organization_id_farm_id_name_deletion_id_key
  ON site (organization_id, farm_id, name, deletion_id) NULLS NOT DISTINCT;
CREATE INDEX ON collection (organization_id, name, id);
CREATE INDEX ON collection (organization_id, boot_menu_id);
CREATE UNIQUE INDEX collection_organization_id_site_id_name_deletion_id_key
  ON collection (organization_id, site_id, name, deletion_id) NULLS NOT DISTINCT;
CREATE UNIQUE INDEX organization_slug_key ON organization (slug);
CREATE INDEX ON membership (user_id, created_at);

-- Two that rotate at once: the second begins where the first ended.
CREATE UNIQUE INDEX signing_key_organization_id_previous_key_key ON signing_key (organization_id, previous_key);
CREATE INDEX ON vdisk (organization_id, name, id);
CREATE UNIQUE INDEX vdisk_organization_id_farm_id_name_deletion_id_key
  ON vdisk (organization_id, farm_id, name, deletion_id) NULLS NOT DISTINCT;
CREATE INDEX ON vdisk (organization_id, store_id);
CREATE UNIQUE INDEX vdisk_version_organization_id_vdisk_id_number_key
  ON vdisk_version (organization_id, vdisk_id, number);
CREATE INDEX ON power_order (organization_id, expires_at);
CREATE INDEX ON power_order (organization_id, device_id, requested_at);
CREATE INDEX ON power_order (organization_id, taken_boot_id);
CREATE INDEX ON withdrawn_boot (organization_id, change);
CREATE INDEX ON withdrawn_boot (organization_id, edge_id, withdrawn_at);
CREATE INDEX ON discovered_device (organization_id, first_seen_at DESC, id DESC);
CREATE INDEX ON discovered_device (organization_id, site_id, last_seen_at);
CREATE INDEX ON discovered_device (organization_id, edge_id);
CREATE UNIQUE INDEX discovered_device_organization_id_site_id_mac_key
  ON discovered_device (organization_id, site_id, mac);
CREATE UNIQUE INDEX adoption_rule_organization_id_site_id_position_key
  ON adoption_rule (organization_id, site_id, position);
CREATE INDEX ON boot_menu (organization_id, name, id);
CREATE UNIQUE INDEX boot_menu_organization_id_farm_id_name_key ON boot_menu (organization_id, farm_id, name);
CREATE INDEX ON boot_menu_entry (organization_id, vdisk_id);
CREATE INDEX ON boot_menu_entry (organization_id, version_id);
CREATE INDEX ON boot_capture (organization_id, site_id, received_at DESC, boot_id DESC);
CREATE INDEX ON boot_capture (received_at);
CREATE INDEX ON role_grant (organization_id, user_id);
CREATE INDEX ON role_grant (organization_id, farm_id);
CREATE INDEX ON role_grant (organization_id, site_id);
CREATE INDEX ON role_grant (organization_id, collection_id);
CREATE UNIQUE INDEX role_grant_once
  ON role_grant (organization_id, user_id, role, farm_id, site_id, collection_id) NULLS NOT DISTINCT;
CREATE INDEX ON audit_entry (organization_id, at DESC, id DESC);
CREATE INDEX ON audit_entry (organization_id, object_id, at DESC);
CREATE INDEX ON audit_entry (organization_id, actor_id, at DESC);
CREATE INDEX ON deletion (organization_id, deleted_at DESC, id DESC);
CREATE INDEX ON deletion (organization_id, object_id);
CREATE UNIQUE INDEX store_organization_id_farm_id_name_deletion_id_key
  ON store (organization_id, farm_id, name, deletion_id) NULLS NOT DISTINCT;
CREATE INDEX ON store (organization_id, name, id);
CREATE INDEX ON two_factor (user_id);
CREATE UNIQUE INDEX rate_limit_key_key ON rate_limit (key);
CREATE UNIQUE INDEX setup_link_token_hash_key ON setup_link (token_hash);
CREATE UNIQUE INDEX invitation_token_hash_key ON invitation (token_hash);
CREATE INDEX ON invitation (organization_id, email);
CREATE INDEX ON invitation (organization_id, farm_id);
CREATE INDEX ON invitation (organization_id, site_id);
CREATE INDEX ON invitation (organization_id, collection_id);

-- Who invites once more resends; two open invitations of the same role in the same place say nothing new.
CREATE UNIQUE INDEX invitation_open_once
  ON invitation (organization_id, email, role, farm_id, site_id, collection_id) NULLS NOT DISTINCT
  WHERE (accepted_at IS NULL) AND (revoked_at IS NULL);
CREATE UNIQUE INDEX api_key_secret_hash_key ON api_key (secret_hash);
CREATE INDEX ON api_key (organization_id, created_at DESC, id DESC);
CREATE INDEX ON idempotent_request (organization_id, created_at);
CREATE INDEX ON webhook_endpoint (organization_id, created_at DESC, id DESC);
CREATE UNIQUE INDEX webhook_event_organization_id_type_subject_key ON webhook_event (organization_id, type, subject);
CREATE INDEX ON webhook_event (organization_id, created_at);
CREATE INDEX ON webhook_delivery (organization_id, endpoint_id, created_at DESC, id DESC);
CREATE INDEX ON webhook_delivery (organization_id, event_id);
CREATE INDEX webhook_delivery_due ON webhook_delivery (due_at) WHERE state = 'pending'::"WebhookDeliveryState";
CREATE INDEX ON boot_key (organization_id, change);
CREATE INDEX ON boot_key (received_on);
CREATE INDEX ON boot (organization_id, started_at DESC, id DESC);
CREATE INDEX ON boot (organization_id, device_id, started_at DESC, id DESC);
CREATE INDEX ON boot (organization_id, site_id, started_at DESC, id DESC);
CREATE INDEX ON boot (organization_id, outcome, started_at DESC, id DESC);

-- Filters that hardly any boot passes: without an index of their own they would read all of an organization's boots.
CREATE INDEX boot_simulated_idx ON boot (organization_id, started_at DESC, id DESC) WHERE simulated;
CREATE INDEX boot_generated_idx ON boot (organization_id, started_at DESC, id DESC) WHERE generated;
CREATE INDEX ON boot_rollup (grain, starts_at);
CREATE INDEX ON schedule (organization_id, name, id);
CREATE INDEX ON schedule (organization_id, site_id);
CREATE INDEX ON schedule (renew_at);
CREATE UNIQUE INDEX schedule_organization_id_farm_id_name_key ON schedule (organization_id, farm_id, name);
CREATE INDEX ON schedule_target (organization_id, device_id);
CREATE INDEX ON schedule_target (organization_id, collection_id);
CREATE INDEX ON schedule_run (organization_id, instant DESC, id DESC);
CREATE INDEX ON schedule_run (closed_at, closes_at);
CREATE UNIQUE INDEX schedule_run_organization_id_schedule_id_instant_key
  ON schedule_run (organization_id, schedule_id, instant);
CREATE INDEX schedule_run_untold ON schedule_run (organization_id, instant) WHERE told_at IS NULL;
CREATE INDEX ON schedule_run_device (organization_id, run_id, position);
CREATE INDEX ON schedule_run_device (organization_id, device_id, sent_at DESC);
CREATE INDEX ON schedule_run_device (organization_id, boot_id);
CREATE INDEX ON report_gap (organization_id, edge_id, declared_at);
CREATE UNIQUE INDEX sign_up_link_token_hash_key ON sign_up_link (token_hash);
CREATE INDEX ON sign_up_link (expires_at);
CREATE INDEX ON platform_event (at DESC, id DESC);
CREATE INDEX ON edge_version (organization_id, version_id);
CREATE INDEX ON store_job (organization_id, edge_id, state);
CREATE INDEX ON store_job (organization_id, vdisk_id, asked_at);
CREATE INDEX ON store_job (organization_id, asked_at, id);
CREATE INDEX ON edge_image (organization_id, version_id);
CREATE INDEX ON boot_wait (organization_id, site_id, mac);
CREATE INDEX ON boot_wait (organization_id, asked_edge_id, received_at);

ALTER TABLE vdisk_version ADD CONSTRAINT "manifest_root_is_sha256" CHECK (octet_length(manifest_root) = 32) NOT VALID;
ALTER TABLE collection ADD FOREIGN KEY (organization_id, template_device_id) REFERENCES device ON UPDATE CASCADE ON DELETE RESTRICT;

-- Called once by the migration that makes a table with `organization_id` (or a partition of one). Calling it again changes nothing.
CREATE FUNCTION protect_tenant_table(target regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  key text := CASE WHEN target = 'public.organization'::regclass THEN 'id' ELSE 'organization_id' END;
  own text := format('%I = nullif(current_setting(%L, true), '''')::uuid', key, 'bootfarm.organization_id');
  owner name := (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = target);
BEGIN
  EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', target);
  EXECUTE format('DROP POLICY IF EXISTS own_organization ON %s', target);
  EXECUTE format('CREATE POLICY own_organization ON %s USING (%s) WITH CHECK (%s)', target, own, own);
  -- FORCE binds the owner, too: migrations that change rows, and the functions below, work on all organizations.
  EXECUTE format('DROP POLICY IF EXISTS table_owner ON %s', target);
  EXECUTE format('CREATE POLICY table_owner ON %s TO %I USING (true) WITH CHECK (true)', target, owner);
END
$$;

SELECT protect_tenant_table(pg_class.oid::regclass)
FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND (
  relname = 'organization' OR EXISTS (
    SELECT FROM pg_attribute WHERE attrelid = pg_class.oid AND attname = 'organization_id' AND NOT attisdropped
  )
);

-- What lies in the trash is hidden from every query, whoever wrote it, but those of the trash, whose transactions say so:
-- docs/decisions/0012-trash-by-row-security.md.
DO $$
DECLARE
  target text;
BEGIN
  FOREACH target IN ARRAY ARRAY['farm', 'site', 'collection', 'device', 'vdisk', 'vdisk_version', 'boot_menu', 'store'] LOOP
    EXECUTE format('CREATE POLICY not_in_trash ON %I AS RESTRICTIVE TO bootfarm_api
      USING (deletion_id IS NULL OR current_setting(''bootfarm.trash'', true) = ''shown'') WITH CHECK (true)', target);
  END LOOP;
END
$$;

-- What has to be known before the organization is. Each answers one question and no more.
-- By whose key an edge's request is to be checked.
CREATE FUNCTION edge_identity(edge_id uuid)
RETURNS TABLE (organization_id uuid, site_id uuid, public_key text, revoked_at timestamptz, boot_epoch bigint)
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT edge.organization_id, edge.site_id, edge.public_key, edge.revoked_at, edge.boot_epoch
  FROM public.edge WHERE edge.id = edge_identity.edge_id
$$;

-- Whose join token has this SHA-256.
CREATE FUNCTION join_token_organization(token_hash text) RETURNS uuid
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT join_token.organization_id FROM public.join_token
  WHERE join_token.token_hash = join_token_organization.token_hash
$$;

-- A person's organizations, the one joined first before the others.
CREATE FUNCTION memberships_of(person_id uuid)
RETURNS TABLE (organization_id uuid, organization_slug text, organization_name text)
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT membership.organization_id, organization.slug, organization.name
  FROM public.membership JOIN public.organization ON organization.id = membership.organization_id
  WHERE membership.user_id = memberships_of.person_id
  ORDER BY membership.created_at, membership.organization_id
$$;

-- For jobs, which do their work in one organization after the other.
CREATE FUNCTION organization_ids() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT organization.id FROM public.organization ORDER BY organization.id
$$;

-- Each change that people make is counted, whoever writes it and however: what machines report is not in these lists.
CREATE FUNCTION next_revision() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  NEW.revision := OLD.revision + 1;
  RETURN NEW;
END
$$;

-- Nothing that is not in the trash lies in something that is, also where both are written at once: the parent's row is locked.
-- A parent that is absent or another organization's is none of its business: foreign keys and policies refuse that.
CREATE FUNCTION require_live_parent() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  in_trash boolean;
  before text := coalesce(current_setting('bootfarm.trash', true), '');
BEGIN
  IF NEW.deletion_id IS NOT NULL THEN
    RETURN NEW;
  END IF;
  PERFORM set_config('bootfarm.trash', 'shown', true);
  EXECUTE format(
    'SELECT deletion_id IS NOT NULL FROM public.%I WHERE organization_id = ($1).organization_id AND id = ($1).%I FOR KEY SHARE',
    TG_ARGV[0], TG_ARGV[0] || '_id'
  ) INTO in_trash USING NEW;
  PERFORM set_config('bootfarm.trash', before, true);
  IF in_trash THEN
    RAISE EXCEPTION 'the % of this % is in the trash', TG_ARGV[0], TG_TABLE_NAME USING ERRCODE = 'BF001';
  END IF;
  RETURN NEW;
END
$$;

-- A role in what lies in the trash holds nowhere.
CREATE FUNCTION grants_of(person_id uuid, organization_id uuid) RETURNS jsonb
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(jsonb_agg(jsonb_build_object(
    'role', role_grant.role,
    'scope', jsonb_build_object(
      'farmId', coalesce(role_grant.farm_id, site.farm_id, site_of_collection.farm_id),
      'siteId', coalesce(role_grant.site_id, collection.site_id),
      'collectionId', role_grant.collection_id
    )
  ) ORDER BY role_grant.id), '[]'::jsonb)
  FROM public.role_grant
  LEFT JOIN public.farm ON farm.organization_id = role_grant.organization_id AND farm.id = role_grant.farm_id
  LEFT JOIN public.site ON site.organization_id = role_grant.organization_id AND site.id = role_grant.site_id
  LEFT JOIN public.collection
    ON collection.organization_id = role_grant.organization_id AND collection.id = role_grant.collection_id
  LEFT JOIN public.site AS site_of_collection ON site_of_collection.organization_id = collection.organization_id
    AND site_of_collection.id = collection.site_id
  WHERE role_grant.organization_id = grants_of.organization_id AND role_grant.user_id = grants_of.person_id
    AND site.deletion_id IS NULL AND collection.deletion_id IS NULL AND farm.deletion_id IS NULL
$$;

-- Whose invitation has a token with this SHA-256.
CREATE FUNCTION invitation_organization(token_hash text) RETURNS uuid
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT invitation.organization_id FROM public.invitation
  WHERE invitation.token_hash = invitation_organization.token_hash
$$;

-- Whether somebody has invited this address: it may then make an account by signing in elsewhere.
CREATE FUNCTION is_invited(email text, as_of timestamptz) RETURNS boolean
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT EXISTS (
    SELECT FROM public.invitation
    WHERE invitation.email = is_invited.email AND accepted_at IS NULL AND revoked_at IS NULL AND expires_at > as_of
  )
$$;

-- Which organization has this slug, for settings of the installation that name one.
CREATE FUNCTION organization_of_slug(slug text) RETURNS uuid
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT organization.id FROM public.organization WHERE organization.slug = organization_of_slug.slug
$$;

-- The last: what is left, and the organization. Rows of every table that has an organization go, whatever tables there will be, round after round
-- until one finds nothing: what was written while the first one went is found by the next. Who, when and which stays, and no more.
CREATE FUNCTION delete_organization(organization_id uuid, as_of timestamptz) RETURNS boolean
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  target text;
  asked_by uuid;
  asked_at timestamptz;
  removed bigint;
  removed_of_round bigint;
  is_left boolean;
BEGIN
  SELECT o.delete_asked_by_user_id, o.delete_asked_at INTO asked_by, asked_at FROM public.organization o
  WHERE o.id = $1 AND o.delete_after <= as_of AND o.deleting_at IS NOT NULL FOR UPDATE;
  IF NOT FOUND THEN RETURN false; END IF;
  FOR round IN 1..20 LOOP
    is_left := false;
    removed_of_round := 0;
    FOR target IN
      SELECT c.oid::regclass::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
      WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
        AND a.attname = 'organization_id' AND NOT a.attisdropped
      ORDER BY c.relname
    LOOP
      BEGIN
        EXECUTE format('DELETE FROM %s WHERE organization_id = $1', target) USING delete_organization.organization_id;
        GET DIAGNOSTICS removed = ROW_COUNT;
        removed_of_round := removed_of_round + removed;
      EXCEPTION WHEN foreign_key_violation OR restrict_violation THEN
        is_left := true;
      END;
    END LOOP;
    EXIT WHEN NOT is_left AND removed_of_round = 0;
  END LOOP;
  IF is_left OR removed_of_round > 0 THEN RAISE EXCEPTION 'rows of the organization are still named by others'; END IF;
  PERFORM public.forget_choices($1);
  DELETE FROM public.organization o WHERE o.id = $1;
  INSERT INTO public.platform_event (id, at, actor_user_id, action, subject_id, before, after)
  VALUES (gen_random_uuid(), as_of, asked_by, 'organization.deleted', $1, jsonb_build_object('askedAt', asked_at), NULL);
  RETURN true;
END
$$;

-- Whose API key has this SHA-256, if it may still be used; counts the request, and remembers the use once a minute.
CREATE FUNCTION api_key_identity(secret_hash text, at timestamptz)
RETURNS TABLE (organization_id uuid, organization_name text, api_key_id uuid, user_id uuid, user_name text, user_email text,
  requests integer, requests_per_minute integer, resets_in_seconds integer)
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  known_key record;
  counted record;
BEGIN
  SELECT api_key.organization_id, organization.name AS organization_name, api_key.id, "user".id AS user_id, "user".name AS user_name,
    "user".email AS user_email, api_key.requests_per_minute, api_key.last_used_at
  INTO known_key
  FROM public.api_key
  JOIN public.organization ON organization.id = api_key.organization_id
  JOIN public."user" ON "user".id = api_key.created_by_user_id
  WHERE api_key.secret_hash = api_key_identity.secret_hash AND api_key.revoked_at IS NULL
    AND (api_key.expires_at IS NULL OR api_key.expires_at > api_key_identity.at);
  IF NOT FOUND THEN
    RETURN;
  END IF;
  INSERT INTO public.api_key_window AS known (organization_id, api_key_id, started_at, requests)
  VALUES (known_key.organization_id, known_key.id, api_key_identity.at, 1)
  ON CONFLICT (organization_id, api_key_id) DO UPDATE SET
    started_at = CASE WHEN known.started_at > api_key_identity.at - interval '1 minute' THEN known.started_at ELSE api_key_identity.at END,
    requests = CASE WHEN known.started_at > api_key_identity.at - interval '1 minute' THEN known.requests + 1 ELSE 1 END
  RETURNING known.requests, known.started_at INTO counted;
  IF known_key.last_used_at IS NULL OR known_key.last_used_at <= api_key_identity.at - interval '1 minute' THEN
    UPDATE public.api_key SET last_used_at = api_key_identity.at
    WHERE api_key.organization_id = known_key.organization_id AND api_key.id = known_key.id;
  END IF;
  RETURN QUERY SELECT known_key.organization_id, known_key.organization_name, known_key.id, known_key.user_id, known_key.user_name, known_key.user_email,
    counted.requests, known_key.requests_per_minute,
    greatest(1, least(60, ceil(extract(epoch FROM counted.started_at + interval '1 minute' - api_key_identity.at))::integer));
END
$$;

-- Which messages are to be sent now, the longest due first.
CREATE FUNCTION due_webhook_deliveries(at timestamptz, count_max integer)
RETURNS TABLE (organization_id uuid, delivery_id uuid)
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT webhook_delivery.organization_id, webhook_delivery.id FROM public.webhook_delivery
  WHERE webhook_delivery.state = 'pending' AND webhook_delivery.due_at <= due_webhook_deliveries.at
  ORDER BY webhook_delivery.due_at LIMIT due_webhook_deliveries.count_max
$$;

-- Organizations with an edge that has been silent since before then, which nobody was told of.
CREATE FUNCTION organizations_with_silent_edges(since timestamptz) RETURNS SETOF uuid
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT DISTINCT edge.organization_id FROM public.edge
  WHERE edge.revoked_at IS NULL AND edge.heartbeat_at <= organizations_with_silent_edges.since
    AND (edge.silence_told_at IS NULL OR edge.silence_told_at < edge.heartbeat_at)
$$;

-- A day's partition of `boot` or `boot_detail`. It is made apart and then attached: that locks neither readers nor writers.
-- A partition can be named in a statement and then goes by its own rights and row security, not its parent's: it has them, too,
-- and nobody but the owner may name it.
CREATE FUNCTION make_boot_partition(parent TEXT, of_day DATE) RETURNS VOID
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  partition TEXT := parent || to_char(of_day, '"_"YYYYMMDD');
  grantee TEXT;
BEGIN
  IF to_regclass('public.' || quote_ident(partition)) IS NOT NULL THEN RETURN; END IF;
  -- Room in each page: what is reported again of a boot stays where it is, and its indexes as they are.
  EXECUTE format('CREATE TABLE public.%I (LIKE public.%I INCLUDING ALL) WITH (fillfactor = 85)', partition, parent);
  PERFORM public.protect_tenant_table(to_regclass('public.' || quote_ident(partition)));
  FOR grantee IN
    SELECT DISTINCT CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(acl.grantee)) END
    FROM pg_class, aclexplode(relacl) AS acl
    WHERE pg_class.oid = to_regclass('public.' || quote_ident(partition)) AND acl.grantee <> relowner
  LOOP
    EXECUTE format('REVOKE ALL ON public.%I FROM %s', partition, grantee);
  END LOOP;
  EXECUTE format('ALTER TABLE public.%I ATTACH PARTITION public.%I FOR VALUES FROM (%L) TO (%L)', parent, partition, of_day, of_day + 1);
END $$;

-- Makes what is missing of the partitions of these days. Programs that ask at the same time wait for each other.
CREATE FUNCTION ensure_boot_partitions(first_day DATE, last_day DATE) RETURNS VOID
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  of_day DATE;
BEGIN
  IF last_day - first_day > 31 THEN RAISE EXCEPTION 'Partitions are made for at most 31 days at once.'; END IF;
  FOR of_day IN SELECT generate_series(first_day, last_day, INTERVAL '1 day')::DATE LOOP
    CONTINUE WHEN to_regclass('public.boot' || to_char(of_day, '"_"YYYYMMDD')) IS NOT NULL
      AND to_regclass('public.boot_detail' || to_char(of_day, '"_"YYYYMMDD')) IS NOT NULL;
    PERFORM pg_advisory_xact_lock(hashtextextended('boot partitions', 0));
    PERFORM public.make_boot_partition('boot', of_day);
    PERFORM public.make_boot_partition('boot_detail', of_day);
  END LOOP;
END $$;

-- Of these days, those with a partition of `boot` and of `boot_detail`.
CREATE FUNCTION boot_partitions_of(days DATE[]) RETURNS TABLE (of_day DATE, has_summaries BOOLEAN, has_details BOOLEAN)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT day, to_regclass('public.boot' || to_char(day, '"_"YYYYMMDD')) IS NOT NULL,
    to_regclass('public.boot_detail' || to_char(day, '"_"YYYYMMDD')) IS NOT NULL
  FROM unnest(days) AS day
$$;

-- Drops the partitions of the days before `first_kept`. It waits 3 s at most for those who read or write: all others would wait
-- behind it. Whoever called it calls it again later.
CREATE FUNCTION drop_boot_partitions(parent TEXT, first_kept DATE) RETURNS INTEGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  partition TEXT;
  dropped INTEGER := 0;
BEGIN
  PERFORM set_config('lock_timeout', '3s', true);
  IF parent NOT IN ('boot', 'boot_detail') THEN RAISE EXCEPTION 'There is no % in partitions of days.', parent; END IF;
  FOR partition IN
    SELECT child.relname FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid
    WHERE inhparent = to_regclass('public.' || parent) AND right(child.relname, 8) < to_char(first_kept, 'YYYYMMDD')
  LOOP
    EXECUTE format('DROP TABLE public.%I', partition);
    dropped := dropped + 1;
  END LOOP;
  RETURN dropped;
END $$;

-- Forgets up to `at_most` boots whose partition was dropped, so that an id may come again. What named them names nothing now.
CREATE FUNCTION forget_dropped_boots(first_kept DATE, at_most INTEGER) RETURNS INTEGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  forgotten INTEGER;
  organization_ids UUID[];
  boot_ids UUID[];
BEGIN
  WITH doomed AS (
    SELECT organization_id, boot_id FROM public.boot_key WHERE received_on < first_kept ORDER BY received_on LIMIT at_most
  ), untied AS (
    UPDATE public.power_order SET taken_boot_id = NULL FROM doomed
    WHERE power_order.organization_id = doomed.organization_id AND taken_boot_id = boot_id
  ) SELECT array_agg(boot_id), array_agg(organization_id) INTO boot_ids, organization_ids FROM doomed;
  DELETE FROM public.boot_key USING unnest(organization_ids, boot_ids) AS doomed (organization_id, boot_id)
    WHERE boot_key.organization_id = doomed.organization_id AND boot_key.boot_id = doomed.boot_id;
  GET DIAGNOSTICS forgotten = ROW_COUNT;
  DELETE FROM public.boot_day WHERE received_on < first_kept;
  RETURN forgotten;
END $$;

CREATE FUNCTION forget_hour_rollups(first_kept TIMESTAMPTZ) RETURNS INTEGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  forgotten INTEGER;
BEGIN
  DELETE FROM public.boot_rollup WHERE grain = 'hour' AND starts_at < first_kept;
  GET DIAGNOSTICS forgotten = ROW_COUNT;
  RETURN forgotten;
END $$;

-- Partitioned tables have no foreign keys: a site that goes, alone or with its organization, takes its boots along.
CREATE FUNCTION forget_boots_of_site() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  WITH gone AS (
    DELETE FROM public.boot WHERE organization_id = OLD.organization_id AND site_id = OLD.id RETURNING id, received_on
  ), details AS (
    DELETE FROM public.boot_detail USING gone WHERE boot_detail.organization_id = OLD.organization_id
      AND boot_detail.boot_id = gone.id AND boot_detail.received_on = gone.received_on
  )
  DELETE FROM public.boot_key USING gone WHERE boot_key.organization_id = OLD.organization_id AND boot_key.boot_id = gone.id;
  RETURN NULL;
END $$;

-- What `/readyz` compares with the migrations of its build: the API's role may not read Prisma's own table. In PL/pgSQL, which
-- looks for that table when it is called: Prisma's shadow databases have none.
CREATE FUNCTION applied_migrations() RETURNS SETOF text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN QUERY SELECT migration_name::text FROM public._prisma_migrations
    WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL;
END $$;

-- Boots that go on are those that the edges' last heartbeats count, and of edges that are heard alone: what a vanished edge had begun is not
-- known to go on. Otherwise as before.
CREATE FUNCTION fleet_figures(at TIMESTAMPTZ, online_within INTERVAL, skew_ms BIGINT) RETURNS TABLE (
  edges_online BIGINT, edges_offline BIGINT, edges_skewed BIGINT, edges_refused BIGINT, devices_booting BIGINT, report_backlog BIGINT,
  states_waiting BIGINT, oldest_state_waiting_at TIMESTAMPTZ, deliveries_waiting BIGINT, oldest_delivery_due_at TIMESTAMPTZ
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  WITH edges AS (
    SELECT organization_id, id, heartbeat_at > at - online_within AS is_online, clock_offset_ms, refused_code,
      heartbeat->>'reportBacklog' AS backlog, heartbeat->>'devicesBooting' AS booting
    FROM public.edge WHERE revoked_at IS NULL
  ), of_edges AS (
    SELECT count(*) FILTER (WHERE is_online) AS online, count(*) FILTER (WHERE is_online IS NOT TRUE) AS offline,
      count(*) FILTER (WHERE is_online AND abs(clock_offset_ms) > skew_ms) AS skewed, count(refused_code) AS refused,
      coalesce(sum(backlog::BIGINT) FILTER (WHERE is_online), 0)::BIGINT AS backlog,
      coalesce(sum(booting::BIGINT) FILTER (WHERE is_online), 0)::BIGINT AS booting
    FROM edges
  ), of_states AS (
    SELECT count(*) AS waiting, min(desired_state.issued_at) AS oldest
    FROM public.desired_state JOIN edges ON edges.organization_id = desired_state.organization_id AND edges.id = desired_state.edge_id
    WHERE acknowledged_at IS NULL
  ), of_deliveries AS (
    SELECT count(*) AS waiting, min(due_at) AS oldest FROM public.webhook_delivery WHERE state = 'pending'
  )
  SELECT of_edges.online, of_edges.offline, of_edges.skewed, of_edges.refused, of_edges.booting, of_edges.backlog,
    of_states.waiting, of_states.oldest, of_deliveries.waiting, of_deliveries.oldest
  FROM of_edges, of_states, of_deliveries
$$;

-- Who changes a member's roles has seen some of them before: each role that comes or goes is counted, whoever gives or takes it.
CREATE FUNCTION count_grant() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE public.membership SET revision = revision + 1
  WHERE organization_id = coalesce(NEW.organization_id, OLD.organization_id)
    AND user_id = coalesce(NEW.user_id, OLD.user_id);
  RETURN NULL;
END
$$;

-- Quotas. Whatever makes such a row, by hand, in bulk, from a file, out of the trash or by itself, passes here.
CREATE FUNCTION quota_used(organization_id uuid, quota text) RETURNS bigint
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE quota_used.quota
    WHEN 'sites' THEN (SELECT count(*) FROM public.site t WHERE t.organization_id = $1 AND t.deletion_id IS NULL)
    WHEN 'edges' THEN (SELECT count(*) FROM public.edge t WHERE t.organization_id = $1 AND t.revoked_at IS NULL)
    WHEN 'devices' THEN (SELECT count(*) FROM public.device t WHERE t.organization_id = $1 AND t.deletion_id IS NULL)
    WHEN 'vdisks' THEN (SELECT count(*) FROM public.vdisk t WHERE t.organization_id = $1 AND t.deletion_id IS NULL)
    WHEN 'members' THEN (SELECT count(*) FROM public.membership t WHERE t.organization_id = $1)
    WHEN 'api_keys' THEN (
      SELECT count(*) FROM public.api_key t
      WHERE t.organization_id = $1 AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())
    )
    WHEN 'webhooks' THEN (SELECT count(*) FROM public.webhook_endpoint t WHERE t.organization_id = $1)
    WHEN 'schedules' THEN (SELECT count(*) FROM public.schedule t WHERE t.organization_id = $1)
  END
$$;

-- After so many were added: refuses them where the organization has more than it may. Who adds at the same time waits here, so that
-- two cannot both take the last place. Each statement of a volatile function sees what was committed meanwhile.
CREATE FUNCTION require_room(organization_id uuid, quota text, added bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  allowed bigint;
  used bigint;
BEGIN
  SELECT q.count_max INTO allowed FROM public.organization_quota q
  WHERE q.organization_id = require_room.organization_id AND q.name = quota FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  used := public.quota_used(require_room.organization_id, quota);
  IF used > allowed THEN
    RAISE EXCEPTION 'quota exceeded: % used % allowed % added %', quota, used - added, allowed, added USING ERRCODE = 'BF002';
  END IF;
END
$$;

CREATE FUNCTION require_room_for_rows() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  added record;
BEGIN
  FOR added IN SELECT organization_id, count(*) AS rows FROM added_rows GROUP BY organization_id LOOP
    PERFORM public.require_room(added.organization_id, TG_ARGV[0], added.rows);
  END LOOP;
  RETURN NULL;
END
$$;

-- Of the transaction's own organization, for what comes out of the trash: that is no INSERT.
CREATE FUNCTION require_own_room(quota text, added bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF added > 0 THEN
    PERFORM public.require_room(nullif(current_setting('bootfarm.organization_id', true), '')::uuid, quota, added);
  END IF;
END
$$;

-- How many more the transaction's own organization may have, for what takes as many as fit; null for any number. Nobody else takes
-- them before the transaction ends.
CREATE FUNCTION own_room(quota text) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  own uuid := nullif(current_setting('bootfarm.organization_id', true), '')::uuid;
  allowed bigint;
BEGIN
  SELECT q.count_max INTO allowed FROM public.organization_quota q
  WHERE q.organization_id = own AND q.name = quota FOR UPDATE;
  IF NOT FOUND THEN RETURN NULL; END IF;
  RETURN greatest(0, allowed - public.quota_used(own, quota));
END
$$;

-- What the transaction's own organization has, of all that there are quotas for.
CREATE FUNCTION own_usage() RETURNS TABLE (name text, used bigint, count_max integer)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT quota.name, public.quota_used(own.id, quota.name), limits.count_max
  FROM (SELECT nullif(current_setting('bootfarm.organization_id', true), '')::uuid AS id) AS own
  CROSS JOIN unnest(ARRAY['sites', 'edges', 'devices', 'vdisks', 'members', 'api_keys', 'webhooks', 'schedules'])
    WITH ORDINALITY AS quota (name, place)
  LEFT JOIN public.organization_quota limits ON limits.organization_id = own.id AND limits.name = quota.name
  WHERE own.id IS NOT NULL
  ORDER BY quota.place
$$;

-- How many organizations this person has made and still has. The caller holds the person's row.
CREATE FUNCTION organizations_founded_by(person_id uuid) RETURNS bigint
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT count(*) FROM public.organization WHERE founded_by_user_id = person_id
$$;

-- Figures of every organization, for who runs the installation: counts and no content.
CREATE FUNCTION organization_usage(online_since timestamptz, after_id uuid, search text, count_max integer)
RETURNS TABLE (
  organization_id uuid, name text, slug text, created_at timestamptz, suspended_at timestamptz, delete_after timestamptz,
  is_self_service boolean, edges_online bigint, last_report_at timestamptz, edge_versions jsonb, usage jsonb
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT o.id, o.name, o.slug, o.created_at, o.suspended_at, o.delete_after, o.founded_by_user_id IS NOT NULL,
    (SELECT count(*) FROM public.edge e WHERE e.organization_id = o.id AND e.revoked_at IS NULL AND e.heartbeat_at > online_since),
    (SELECT max(e.heartbeat_at) FROM public.edge e WHERE e.organization_id = o.id),
    (
      SELECT coalesce(jsonb_object_agg(v.version, v.edges), '{}')
      FROM (
        -- An edge says its version itself; what is none is no version.
        SELECT CASE WHEN e.agent_version ~ '^[0-9]{1,5}(\.[0-9]{1,5}){1,3}$' THEN e.agent_version ELSE 'other' END AS version,
          count(*) AS edges
        FROM public.edge e WHERE e.organization_id = o.id AND e.revoked_at IS NULL GROUP BY 1
      ) AS v
    ),
    (
      SELECT jsonb_agg(jsonb_build_object('name', quota.name, 'used', public.quota_used(o.id, quota.name), 'allowed', q.count_max)
        ORDER BY quota.place)
      FROM unnest(ARRAY['sites', 'edges', 'devices', 'vdisks', 'members', 'api_keys', 'webhooks', 'schedules'])
        WITH ORDINALITY AS quota (name, place)
      LEFT JOIN public.organization_quota q ON q.organization_id = o.id AND q.name = quota.name
    )
  FROM public.organization o
  WHERE (after_id IS NULL OR o.id > after_id)
    AND (search IS NULL OR strpos(lower(o.name), lower(search)) > 0 OR strpos(o.slug, lower(search)) > 0)
  ORDER BY o.id LIMIT least(organization_usage.count_max, 101)
$$;

-- Sums over the installation.
CREATE FUNCTION platform_figures(online_since timestamptz)
RETURNS TABLE (organizations bigint, suspended bigint, being_deleted bigint, people bigint, edges bigint, edges_online bigint, database_size_bytes bigint)
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT (SELECT count(*) FROM public.organization),
    (SELECT count(*) FROM public.organization WHERE suspended_at IS NOT NULL),
    (SELECT count(*) FROM public.organization WHERE delete_after IS NOT NULL),
    (SELECT count(*) FROM public."user"),
    (SELECT count(*) FROM public.edge WHERE revoked_at IS NULL),
    (SELECT count(*) FROM public.edge WHERE revoked_at IS NULL AND heartbeat_at > online_since),
    pg_database_size(current_database())
$$;

-- The end of an organization, in steps that can each be done again after whoever did them was killed.
CREATE FUNCTION organizations_to_delete(as_of timestamptz) RETURNS SETOF uuid
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT id FROM public.organization WHERE delete_after <= as_of ORDER BY delete_after, id LIMIT 100
$$;

-- What people have chosen to work in: nobody is led to an organization that is gone.
CREATE FUNCTION forget_choices(organization_id uuid) RETURNS void
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  forget text;
BEGIN
  FOR forget IN
    SELECT format('UPDATE %s SET %I = NULL WHERE %I = $1', attrelid::regclass, attname, attname) FROM pg_attribute
    WHERE attrelid IN ('public.session'::regclass, 'public."user"'::regclass)
      AND attname LIKE '%organization\_id' AND NOT attisdropped
  LOOP
    EXECUTE forget USING forget_choices.organization_id;
  END LOOP;
END
$$;

-- The first step, once its time has come: nobody gets in any more, and its edges hear that they are revoked. Says when that was.
CREATE FUNCTION begin_deleting_organization(organization_id uuid, as_of timestamptz) RETURNS timestamptz
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  began timestamptz;
BEGIN
  SELECT coalesce(o.deleting_at, as_of) INTO began FROM public.organization o
  WHERE o.id = $1 AND o.delete_after <= as_of FOR UPDATE;
  IF NOT FOUND THEN RETURN NULL; END IF;
  UPDATE public.organization o SET deleting_at = began WHERE o.id = $1 AND o.deleting_at IS NULL;
  DELETE FROM public.membership t WHERE t.organization_id = $1;
  DELETE FROM public.invitation t WHERE t.organization_id = $1;
  DELETE FROM public.api_key t WHERE t.organization_id = $1;
  DELETE FROM public.webhook_endpoint t WHERE t.organization_id = $1;
  UPDATE public.edge t SET revoked_at = as_of WHERE t.organization_id = $1 AND t.revoked_at IS NULL;
  UPDATE public.join_token t SET expires_at = as_of WHERE t.organization_id = $1 AND t.used_at IS NULL AND t.expires_at > as_of;
  PERFORM public.forget_choices($1);
  RETURN began;
END
$$;

-- The second, again and again until it says 0: removes at most so many rows of one table, partitions each by itself. What others
-- still name is left for the last step.
CREATE FUNCTION delete_organization_rows(organization_id uuid, count_max integer) RETURNS bigint
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  target text;
  removed bigint;
BEGIN
  PERFORM FROM public.organization o WHERE o.id = $1 AND o.deleting_at IS NOT NULL;
  IF NOT FOUND THEN RETURN 0; END IF;
  FOR target IN
    SELECT c.oid::regclass::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attname = 'organization_id' AND NOT a.attisdropped
      -- Locked by whoever reports: held only by the short last step.
      AND c.relname <> 'boot_feed'
    ORDER BY c.reltuples DESC, c.relname
  LOOP
    BEGIN
      EXECUTE format(
        'DELETE FROM %s WHERE ctid = ANY (ARRAY(SELECT ctid FROM %s WHERE organization_id = $1 LIMIT $2))', target, target
      ) USING delete_organization_rows.organization_id, count_max;
      GET DIAGNOSTICS removed = ROW_COUNT;
      IF removed > 0 THEN RETURN removed; END IF;
    EXCEPTION WHEN foreign_key_violation OR restrict_violation THEN
      NULL;
    END;
  END LOOP;
  RETURN 0;
END
$$;

-- Removes at most so many of an organization's oldest entries, and says so in the log; how many it removed. Goes by the database's clock.
-- What tells of a removal is removed without a word: else each would leave another one.
CREATE FUNCTION remove_old_audit_entries(of_organization uuid, count_max integer) RETURNS integer
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  kept_days integer := (SELECT days FROM public.audit_retention);
  kept_from timestamptz := date_trunc('day', now(), 'UTC') - make_interval(days => kept_days);
  removed_count integer;
  told_count integer;
BEGIN
  IF kept_days IS NULL THEN
    RETURN 0;
  END IF;
  WITH old AS (
    SELECT id FROM public.audit_entry
    WHERE organization_id = of_organization AND at < kept_from
    ORDER BY at, id LIMIT least(count_max, 10000)
  ), removed AS (
    DELETE FROM public.audit_entry entry USING old
    WHERE entry.organization_id = of_organization AND entry.id = old.id
    RETURNING entry.action
  )
  SELECT count(*), count(*) FILTER (WHERE action <> 'audit.removeOld') INTO removed_count, told_count FROM removed;
  IF told_count > 0 THEN
    INSERT INTO public.audit_entry (organization_id, id, at, actor_kind, actor_name, action, object_kind, after)
    VALUES (
      of_organization, gen_random_uuid(), now(), 'system', 'audit retention', 'audit.removeOld', 'audit',
      jsonb_build_object('removedCount', told_count, 'olderThan', kept_from, 'keptDays', kept_days)
    );
  END IF;
  RETURN removed_count;
END
$$;

-- A sealed version never changes, whoever writes it: its bytes are what its root says.
CREATE FUNCTION keep_sealed() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'version % is sealed: what it holds never changes', OLD.number USING ERRCODE = 'check_violation';
END
$$;

-- Where a version's release instant has come and it is not the default yet.
CREATE FUNCTION organizations_with_due_releases(until timestamptz) RETURNS SETOF uuid
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT DISTINCT vdisk.organization_id FROM public.vdisk
  JOIN public.vdisk_version AS version ON version.organization_id = vdisk.organization_id AND version.id = vdisk.pending_version_id
  WHERE vdisk.deletion_id IS NULL AND version.released_at <= organizations_with_due_releases.until
$$;

DO $$
DECLARE
  target text;
  argument text;
BEGIN
  FOR target, argument IN VALUES
    ('farm', 'name, deletion_id'),
    ('site', 'farm_id, name, time_zone, unknown_devices, boot_program_set, capture, personality, deletion_id'),
    ('collection', 'site_id, name, vdisk_id, boot_program_set, boot_menu_id, personality, template_device_id,
      deletion_id'),
    ('device', 'site_id, collection_id, name, mac, enabled, boot_program_set, boot_menu_choice, boot_menu_id,
      tags, vdisk_id, personality, device_type, deletion_id'),
    ('vdisk', 'name, store_id, note, default_version_id, override_version_id, pending_version_id,
      maintenance_device_id, write_cache, write_cache_limit_bytes, write_cache_full, deletion_id'),
    ('vdisk_version', 'note, labels, state, released_at, seal_asked_at, deletion_id'),
    ('boot_menu', 'name, timeout_ms, default_position, updated_at, deletion_id'),
    ('store', 'name, note, deletion_id'),
    ('edge', 'name, site_id, weight, subnets, draining, revoked_at')
  LOOP
    EXECUTE format('CREATE TRIGGER next_revision BEFORE UPDATE OF %s ON %I
      FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION next_revision()', argument, target);
  END LOOP;
  FOR target, argument IN VALUES
    ('site', 'farm'), ('vdisk', 'farm'), ('store', 'farm'), ('collection', 'site'),
    ('device', 'collection'), ('vdisk_version', 'vdisk')
  LOOP
    EXECUTE format('CREATE TRIGGER live_parent BEFORE INSERT OR UPDATE OF %I, deletion_id ON %I
      FOR EACH ROW EXECUTE FUNCTION require_live_parent(%L)', argument || '_id', target, argument);
  END LOOP;
  FOR target, argument IN VALUES
    ('site', 'sites'), ('edge', 'edges'), ('device', 'devices'), ('vdisk', 'vdisks'),
    ('membership', 'members'), ('api_key', 'api_keys'), ('webhook_endpoint', 'webhooks'), ('schedule', 'schedules')
  LOOP
    EXECUTE format('CREATE TRIGGER within_quota AFTER INSERT ON %I REFERENCING NEW TABLE AS added_rows
      FOR EACH STATEMENT EXECUTE FUNCTION require_room_for_rows(%L)', target, argument);
  END LOOP;
END
$$;

CREATE TRIGGER forget_boots_of_site AFTER DELETE ON site FOR EACH ROW EXECUTE FUNCTION forget_boots_of_site();
CREATE TRIGGER count_grant AFTER INSERT OR DELETE ON role_grant FOR EACH ROW EXECUTE FUNCTION count_grant();
CREATE TRIGGER keep_sealed BEFORE UPDATE OF number, size_bytes, manifest_root, sealed_at ON vdisk_version
  FOR EACH ROW WHEN (OLD.sealed_at IS NOT NULL AND OLD.manifest_root IS NOT NULL AND (
    OLD.number, OLD.size_bytes, OLD.manifest_root, OLD.sealed_at
  ) IS DISTINCT FROM (NEW.number, NEW.size_bytes, NEW.manifest_root, NEW.sealed_at))
  EXECUTE FUNCTION keep_sealed();

GRANT EXECUTE ON FUNCTION
  edge_identity(uuid),
  join_token_organization(text),
  memberships_of(uuid),
  organization_ids(),
  grants_of(uuid, uuid),
  invitation_organization(text),
  is_invited(text, timestamptz),
  organization_of_slug(text),
  delete_organization(uuid, timestamptz),
  api_key_identity(text, timestamptz),
  due_webhook_deliveries(timestamptz, integer),
  organizations_with_silent_edges(timestamptz),
  ensure_boot_partitions(date, date),
  boot_partitions_of(date[]),
  drop_boot_partitions(text, date),
  forget_dropped_boots(date, integer),
  forget_hour_rollups(timestamptz),
  applied_migrations(),
  fleet_figures(timestamptz, interval, bigint),
  require_own_room(text, bigint),
  own_room(text),
  own_usage(),
  organizations_founded_by(uuid),
  organization_usage(timestamptz, uuid, text, integer),
  platform_figures(timestamptz),
  organizations_to_delete(timestamptz),
  begin_deleting_organization(uuid, timestamptz),
  delete_organization_rows(uuid, integer),
  remove_old_audit_entries(uuid, integer),
  organizations_with_due_releases(timestamptz)
TO bootfarm_api;

-- An entry of the audit log is never changed and never removed by the API.
REVOKE UPDATE, DELETE ON audit_entry FROM bootfarm_api;

-- What those who run the installation did stays, as the organizations' own audit log does while they are there.
REVOKE UPDATE, DELETE ON platform_event FROM bootfarm_api;

REVOKE INSERT, UPDATE, DELETE ON audit_retention FROM bootfarm_api;
