-- What `/readyz` compares with the migrations of its build: the API's role may not read Prisma's own table. In PL/pgSQL, which
-- looks for that table when it is called: Prisma's shadow databases have none.
CREATE FUNCTION applied_migrations() RETURNS SETOF text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN QUERY SELECT migration_name::text FROM public._prisma_migrations
    WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL;
END $$;

REVOKE EXECUTE ON FUNCTION applied_migrations() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION applied_migrations() TO bootfarm_api;
