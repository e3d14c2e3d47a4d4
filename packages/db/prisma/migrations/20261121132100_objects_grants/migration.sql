-- A role in what lies in the trash holds nowhere.
CREATE OR REPLACE FUNCTION grants_of(person_id uuid, organization_id uuid) RETURNS jsonb
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
