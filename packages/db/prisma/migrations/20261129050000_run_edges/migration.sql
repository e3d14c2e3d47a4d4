-- Which edges a run of a schedule waits for: it is done once each of them has reported its end, or is away.
CREATE TABLE schedule_run_edge (
  organization_id UUID,
  run_id UUID,
  edge_id UUID,
  site_id UUID NOT NULL,
  state TEXT NOT NULL DEFAULT 'waiting'
    CHECK (state IN ('waiting', 'running', 'done', 'missed', 'stopped', 'away', 'not_reported')),
  changed_at TIMESTAMPTZ(3) NOT NULL,
  PRIMARY KEY (organization_id, run_id, edge_id),
  FOREIGN KEY (organization_id, run_id) REFERENCES schedule_run ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, edge_id) REFERENCES edge ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX ON schedule_run_edge (organization_id, edge_id);
SELECT protect_tenant_table('schedule_run_edge');
