import { dehydrate, hydrate, QueryClient } from '@tanstack/react-query'
import { expect, test } from 'vitest'
import { inBrowserTime } from './in-browser-time.ts'

test('data of a server whose clock is behind is not stale at once, and one that is ahead does not keep it fresh', () => {
  const nowMs = Date.parse('2026-11-28T12:00:00Z')
  for (const offMs of [-3_600_000, 3_600_000]) {
    const server = new QueryClient()
    server.setQueryData(['boots'], [1], { updatedAt: nowMs + offMs })
    const browser = new QueryClient()
    hydrate(browser, inBrowserTime(dehydrate(server), nowMs))
    expect(browser.getQueryState(['boots'])).toMatchObject({ data: [1], dataUpdatedAt: nowMs, isInvalidated: false })
  }
})
