import { expect, test } from 'vitest'
import { problemsOf, stampProblemsOf } from '../../../scripts/checks/migrations.mjs'

test.each([
  'DROP TABLE boot',
  'ALTER TABLE "boot" DROP COLUMN mac',
  'ALTER TABLE boot RENAME TO boots',
  'ALTER TABLE boot RENAME COLUMN mac TO address',
  `ALTER TYPE "BootOutcome" RENAME VALUE 'ready' TO 'up'`,
  'ALTER TABLE boot ALTER COLUMN mac SET NOT NULL',
  'ALTER TABLE boot ALTER COLUMN retries TYPE integer',
  'ALTER TABLE boot ADD COLUMN rack integer NOT NULL',
  'ALTER TABLE boot ADD CONSTRAINT some CHECK (retries > 0)',
  'CREATE INDEX boot_mac ON boot (mac)',
  'CREATE UNIQUE INDEX boot_mac ON "boot" (mac)',
  'UPDATE boot SET retries = 0',
  'DELETE FROM boot',
  'TRUNCATE boot',
  'DO $$ BEGIN DROP TABLE boot; END $$',
  '-- not expand-only: no\nDROP TABLE boot',
])('a migration that an API of the release before could not live with is found: %s', (sql) => {
  expect(problemsOf(`SELECT 1;\n${sql};\nSELECT 2`)).toHaveLength(1)
})

test.each([
  'CREATE TABLE "rack" (id int NOT NULL); CREATE UNIQUE INDEX rack_id ON "rack" (id); ALTER TABLE "rack" ADD CONSTRAINT f FOREIGN KEY (id) REFERENCES site (id) ON UPDATE CASCADE',
  'ALTER TABLE boot ADD COLUMN rack integer',
  'ALTER TABLE boot ADD COLUMN rack integer NOT NULL DEFAULT 0',
  'ALTER TABLE boot ADD CONSTRAINT some CHECK (retries > 0) NOT VALID',
  'CREATE FUNCTION forget() RETURNS void LANGUAGE sql AS $$ DELETE FROM boot; DROP TABLE rack; $$',
  'REVOKE UPDATE, DELETE, TRUNCATE ON boot FROM bootfarm_api',
  '-- DROP TABLE boot\nSELECT 1',
  '-- not expand-only: the API of the release before never reads this table\nDROP TABLE rack',
])('a migration that adds, or says why it does no harm, is taken: %s', (sql) => {
  expect(problemsOf(sql)).toEqual([])
})

test('a migration with the time stamp of another one is found', () => {
  expect(stampProblemsOf(['20261201000000_rack', '20261201000000_shelf', '20261202000000_row'])).toEqual([
    expect.stringContaining('20261201000000_shelf has the time stamp of another migration'),
  ])
})
