-- Organizations in which a version may have to get from one edge to another: most have one edge, or none.
CREATE FUNCTION organizations_with_copies() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT organization.id FROM public.organization
  WHERE EXISTS (SELECT FROM public.edge_version AS stored WHERE stored.organization_id = organization.id)
    AND 1 < (SELECT count(*) FROM (SELECT FROM public.edge WHERE edge.organization_id = organization.id
      AND edge.revoked_at IS NULL LIMIT 2) AS two)
$$;
GRANT EXECUTE ON FUNCTION organizations_with_copies() TO bootfarm_api;
