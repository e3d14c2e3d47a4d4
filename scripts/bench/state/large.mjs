import { addOwner } from '../../../apps/api/test/add-owner.ts'
import { createTenant, sessionCookie } from '../../../apps/api/test/test-tenant.ts'
import { say } from '../../lib/progress.mjs'
import { withControlPlane } from '../control-plane.mjs'
import { measureLists } from './lists.mjs'
import { plantLarge } from './plant-large.mjs'
import { measureQueries } from './queries.mjs'
import { measureRevert } from './revert.mjs'
import { measureSearch } from './search.mjs'

/** Queries come first: a revert leaves dead rows at each site. */
const cases = { queries: measureQueries, lists: measureLists, search: measureSearch, revert: measureRevert }

/**
 * Measures these cases in one organization with 10,000 sites, 100,000 devices and 200,000 boots.
 * @param {string[]} names
 */
export function measureLarge(names) {
  return withControlPlane('state', async (place) => {
    const tenant = await createTenant(place, 'large')
    const { userId } = await addOwner(place, tenant.organizationId, 'Owner')
    const cookie = await sessionCookie(place, userId)
    const begin = performance.now()
    const planted = await plantLarge(place.ownerUrl, tenant)
    say(`planted in ${((performance.now() - begin) / 1000).toFixed(0)} s`)
    const measured = {}
    for (const [name, measure] of Object.entries(cases))
      if (names.includes(name)) measured[name] = await measure(place, { ...tenant, ...planted, cookie })
    return measured
  })
}
