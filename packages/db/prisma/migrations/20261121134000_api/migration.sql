-- API keys, requests that are done once, and webhooks: docs/api.md.

CREATE TYPE "WebhookDeliveryState" AS ENUM ('pending', 'delivered', 'failed');

CREATE TABLE "api_key" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "prefix" TEXT NOT NULL,
    "secret_hash" TEXT NOT NULL,
    "role" "Role" NOT NULL,
    "farm_id" UUID,
    "site_id" UUID,
    "collection_id" UUID,
    "permissions" TEXT[],
    "requests_per_minute" INTEGER NOT NULL DEFAULT 600,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "created_by_user_id" UUID,
    "expires_at" TIMESTAMPTZ(3),
    "revoked_at" TIMESTAMPTZ(3),
    "last_used_at" TIMESTAMPTZ(3),
    CONSTRAINT "api_key_pkey" PRIMARY KEY ("organization_id","id"),
    CONSTRAINT "api_key_one_place" CHECK (num_nonnulls("farm_id", "site_id", "collection_id") <= 1)
);
CREATE UNIQUE INDEX "api_key_secret_hash_key" ON "api_key"("secret_hash");
CREATE INDEX "api_key_organization_id_created_at_id_idx" ON "api_key"("organization_id", "created_at" DESC, "id" DESC);
ALTER TABLE "api_key" ADD CONSTRAINT "api_key_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organization"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "api_key" ADD CONSTRAINT "api_key_organization_id_farm_id_fkey" FOREIGN KEY ("organization_id", "farm_id") REFERENCES "farm"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "api_key" ADD CONSTRAINT "api_key_organization_id_site_id_fkey" FOREIGN KEY ("organization_id", "site_id") REFERENCES "site"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "api_key" ADD CONSTRAINT "api_key_organization_id_collection_id_fkey" FOREIGN KEY ("organization_id", "collection_id") REFERENCES "collection"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- Counts are worth nothing after a crash: unlogged, so that counting a request costs no write to the log.
CREATE UNLOGGED TABLE "api_key_window" (
    "organization_id" UUID NOT NULL,
    "api_key_id" UUID NOT NULL,
    "started_at" TIMESTAMPTZ(3) NOT NULL,
    "requests" INTEGER NOT NULL,
    CONSTRAINT "api_key_window_pkey" PRIMARY KEY ("organization_id","api_key_id")
);
ALTER TABLE "api_key_window" ADD CONSTRAINT "api_key_window_organization_id_api_key_id_fkey" FOREIGN KEY ("organization_id", "api_key_id") REFERENCES "api_key"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

CREATE TABLE "idempotent_request" (
    "organization_id" UUID NOT NULL,
    "caller_id" UUID NOT NULL,
    "key_hash" TEXT NOT NULL,
    "request_hash" TEXT NOT NULL,
    "answer" BYTEA,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    CONSTRAINT "idempotent_request_pkey" PRIMARY KEY ("organization_id","caller_id","key_hash")
);
CREATE INDEX "idempotent_request_organization_id_created_at_idx" ON "idempotent_request"("organization_id", "created_at");
ALTER TABLE "idempotent_request" ADD CONSTRAINT "idempotent_request_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organization"("id") ON DELETE CASCADE ON UPDATE CASCADE;

CREATE TABLE "webhook_endpoint" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "url" TEXT NOT NULL,
    "events" TEXT[],
    "secret" BYTEA NOT NULL,
    "previous_secret" BYTEA,
    "previous_secret_until" TIMESTAMPTZ(3),
    "enabled" BOOLEAN NOT NULL DEFAULT true,
    "disabled_reason" TEXT,
    "failing_since" TIMESTAMPTZ(3),
    "revision" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    CONSTRAINT "webhook_endpoint_pkey" PRIMARY KEY ("organization_id","id")
);
CREATE INDEX "webhook_endpoint_organization_id_created_at_id_idx" ON "webhook_endpoint"("organization_id", "created_at" DESC, "id" DESC);
ALTER TABLE "webhook_endpoint" ADD CONSTRAINT "webhook_endpoint_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organization"("id") ON DELETE CASCADE ON UPDATE CASCADE;

CREATE TABLE "webhook_event" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "type" TEXT NOT NULL,
    "subject" TEXT NOT NULL,
    "payload" JSONB NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    CONSTRAINT "webhook_event_pkey" PRIMARY KEY ("organization_id","id")
);
CREATE UNIQUE INDEX "webhook_event_organization_id_type_subject_key" ON "webhook_event"("organization_id", "type", "subject");
CREATE INDEX "webhook_event_organization_id_created_at_idx" ON "webhook_event"("organization_id", "created_at");
ALTER TABLE "webhook_event" ADD CONSTRAINT "webhook_event_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organization"("id") ON DELETE CASCADE ON UPDATE CASCADE;

CREATE TABLE "webhook_delivery" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "endpoint_id" UUID NOT NULL,
    "event_id" UUID NOT NULL,
    "state" "WebhookDeliveryState" NOT NULL DEFAULT 'pending',
    "attempt_count" INTEGER NOT NULL DEFAULT 0,
    "due_at" TIMESTAMPTZ(3) NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "attempts" JSONB NOT NULL DEFAULT '[]',
    CONSTRAINT "webhook_delivery_pkey" PRIMARY KEY ("organization_id","id")
);
CREATE INDEX "webhook_delivery_organization_id_endpoint_id_created_at_id_idx" ON "webhook_delivery"("organization_id", "endpoint_id", "created_at" DESC, "id" DESC);
CREATE INDEX "webhook_delivery_organization_id_event_id_idx" ON "webhook_delivery"("organization_id", "event_id");
CREATE INDEX "webhook_delivery_due" ON "webhook_delivery"("due_at") WHERE "state" = 'pending';
ALTER TABLE "webhook_delivery" ADD CONSTRAINT "webhook_delivery_organization_id_endpoint_id_fkey" FOREIGN KEY ("organization_id", "endpoint_id") REFERENCES "webhook_endpoint"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "webhook_delivery" ADD CONSTRAINT "webhook_delivery_organization_id_event_id_fkey" FOREIGN KEY ("organization_id", "event_id") REFERENCES "webhook_event"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

ALTER TABLE "edge" ADD COLUMN "silence_told_at" TIMESTAMPTZ(3);

SELECT protect_tenant_table('api_key');
SELECT protect_tenant_table('api_key_window');
SELECT protect_tenant_table('idempotent_request');
SELECT protect_tenant_table('webhook_endpoint');
SELECT protect_tenant_table('webhook_event');
SELECT protect_tenant_table('webhook_delivery');

-- What has to be known before the organization is.

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

GRANT EXECUTE ON FUNCTION api_key_identity(text, timestamptz), due_webhook_deliveries(timestamptz, integer),
  organizations_with_silent_edges(timestamptz) TO bootfarm_api;
