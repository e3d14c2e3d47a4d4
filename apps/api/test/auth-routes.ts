import { createDb } from '@bootfarm/db'
import { createAuth } from '../src/http/auth/auth.ts'
import { testOrigin, testSecret } from './test-constants.ts'

export interface AuthRoute {
  method: string
  /** From `/api/auth` on. */
  path: string
}

/**
 * Each route that better-auth has, those that are disabled included: read from better-auth, so that an update's new
 * ones are there.
 */
export function authRoutes(): AuthRoute[] {
  // Asked for its routes alone: nothing connects.
  const db = createDb('postgresql://nobody@127.0.0.1:1/none')
  const endpoints = createAuth({ db, webUrl: testOrigin, secret: testSecret }).api as object
  return Object.values(endpoints).flatMap(
    ({ path, options }: { path?: string; options: { method: string | string[] } }) =>
      // Without a path it is for the server alone.
      path === undefined
        ? []
        : [options.method].flat().map((method) => ({ method, path: `/api/auth${path.replace(/:\w+/, 'oidc')}` })),
  )
}
