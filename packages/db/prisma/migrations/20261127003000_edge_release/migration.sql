-- The release that an edge is to run, and how often one was ordered: packages/proto/UPLINK.md, "Updates".
ALTER TABLE edge ADD COLUMN wanted_release TEXT;
ALTER TABLE edge ADD COLUMN release_attempt INTEGER NOT NULL DEFAULT 0;

-- As in 20261126200000_seal_key, and the release.
SELECT wake_edges_on('edge',
  $$SELECT organization_id, id, site_id, name, public_key, enrolled_at, revoked_at, weight, subnets, draining, rotate_key_from,
    seal_key, wanted_release, release_attempt, heartbeat->>'address' AS address, heartbeat->>'peerPort' AS peer_port,
    heartbeat->>'streamPort' AS stream_port FROM %s$$,
  $$SELECT site_id FROM changed
    UNION SELECT public.sites_with_home(organization_id, id) FROM changed GROUP BY organization_id, id
      HAVING count(*) = 1 OR count(DISTINCT name) > 1$$);
