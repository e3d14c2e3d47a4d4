-- The key to which desired states seal what only their edge may read: packages/proto/UPLINK.md, "Sealed keys".
ALTER TABLE edge ADD COLUMN seal_key TEXT;

-- As in 20261123160000_wake_edges, and the key.
SELECT wake_edges_on('edge',
  $$SELECT organization_id, id, site_id, name, public_key, enrolled_at, revoked_at, weight, subnets, draining, rotate_key_from,
    seal_key, heartbeat->>'address' AS address, heartbeat->>'peerPort' AS peer_port,
    heartbeat->>'streamPort' AS stream_port FROM %s$$,
  $$SELECT site_id FROM changed
    UNION SELECT public.sites_with_home(organization_id, id) FROM changed GROUP BY organization_id, id
      HAVING count(*) = 1 OR count(DISTINCT name) > 1$$);
