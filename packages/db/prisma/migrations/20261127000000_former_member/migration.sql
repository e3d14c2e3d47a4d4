-- Whoever is removed from an organization, or leaves it, does not come back by a rule for the domain of an address.
CREATE TABLE former_member (
  organization_id UUID,
  user_id UUID,
  ended_at TIMESTAMPTZ(3) NOT NULL,
  PRIMARY KEY (organization_id, user_id),
  FOREIGN KEY (organization_id) REFERENCES organization ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (user_id) REFERENCES "user" ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX ON former_member (user_id);

SELECT protect_tenant_table('former_member');
