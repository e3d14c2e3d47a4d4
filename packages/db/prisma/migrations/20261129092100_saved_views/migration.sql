-- The views of "Explore" that a person has named: docs/decisions/0104-explore.md. They go with the membership.
CREATE TABLE saved_views (
  organization_id UUID,
  user_id UUID,
  views JSONB NOT NULL,
  PRIMARY KEY (organization_id, user_id),
  FOREIGN KEY (organization_id, user_id) REFERENCES membership ON UPDATE CASCADE ON DELETE CASCADE
);
SELECT protect_tenant_table('saved_views');
