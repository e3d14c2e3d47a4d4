import type { TestProject } from 'vitest/node'
import { startTestPostgres } from './test-postgres.ts'

/** One PostgreSQL for a run, with a migrated database that each test file copies. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const server = await startTestPostgres()
  project.provide('templateUrl', server.templateUrl)
  project.provide('templateApiUrl', server.templateApiUrl)
  return server.stop
}
