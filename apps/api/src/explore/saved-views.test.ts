import { expect, test } from 'vitest'
import { query } from '../../test/test-client.ts'
import { useTestSite } from '../../test/test-site.ts'
import { signInAs } from '../../test/test-tenant.ts'
import { type SavedViewsView, savedViewsMax } from './views-schema.ts'

const site = useTestSite('viewer')
const view = (name: string, path = '/explore?by=site') => ({ name, path })

test('a person’s views are kept in their order, and nobody else has them', async () => {
  const views = [view('Slow'), view('Versions', '/explore/compare?version=a&base-version=b')]
  expect(await site().query('explore.views')).toEqual({ views: [] })
  expect(await site().mutate('explore.setViews', { views })).toEqual({ views })
  expect(await site().query('explore.views')).toEqual({ views })
  const { api, tenant } = site()
  const other = await signInAs(api, tenant.organizationId, 'owner')
  expect(await query<SavedViewsView>(api, other, 'explore.views')).toEqual({ views: [] })
  await site().mutate('explore.setViews', { views: views.slice(1) })
  expect(await site().query('explore.views')).toEqual({ views: views.slice(1) })
})

test('addresses of other pages and sites, equal names and too many views are refused', async () => {
  for (const [views, text] of [
    [[view('Other page', '/members')], 'address of the page Explore'],
    [[view('Other site', '//evil.example/explore')], 'address of the page Explore'],
    [[view('Script', 'javascript:alert(1)')], 'address of the page Explore'],
    [[view('Line', '/explore?a=\n')], 'address of the page Explore'],
    [[view('Deep', '/explore/compare/x')], 'address of the page Explore'],
    [[view('Twice'), view('Twice')], 'same name'],
    [[view('')], 'Enter a name'],
    [Array.from({ length: savedViewsMax + 1 }, (_, index) => view(`View ${index}`)), 'At most 50'],
    [[view('Long', `/explore?search=${'x'.repeat(4_000)}`)], ''],
  ] as const) {
    const answer = await site().tryMutation('explore.setViews', { views })
    expect(answer).toMatchObject({ status: 400 })
    expect(JSON.stringify(answer)).toContain(text)
  }
})
