-- AlterTable
ALTER TABLE "membership" ADD COLUMN     "revision" INTEGER NOT NULL DEFAULT 1;

-- AlterTable
ALTER TABLE "user" ADD COLUMN     "last_organization_id" UUID,
ADD COLUMN     "last_sign_in_at" TIMESTAMPTZ(3);

-- What is known of the time before: the newest session that is still there.
UPDATE "user" SET "last_sign_in_at" = (SELECT max(session.created_at) FROM session WHERE session.user_id = "user".id);

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
CREATE TRIGGER count_grant AFTER INSERT OR DELETE ON "role_grant" FOR EACH ROW EXECUTE FUNCTION count_grant();
