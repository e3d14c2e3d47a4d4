import { test as base, type Page } from '@playwright/test'

export * from '@playwright/test'

/** Playwright's, with pages that are loaded once their program runs: until then nothing listens to a click. */
export const test = base.extend({
  page: async ({ page }, use) => {
    const [goto, reload] = [page.goto.bind(page), page.reload.bind(page)]
    page.goto = async (...args) => {
      const response = await goto(...args)
      await untilHydrated(page)
      return response
    }
    page.reload = async (...args) => {
      const response = await reload(...args)
      await untilHydrated(page)
      return response
    }
    await use(page)
  },
})

/** Resolves at once for documents that are not the dashboard's. */
export async function untilHydrated(page: Page): Promise<void> {
  await page.locator('html:not([data-hydrated="false"])').waitFor({ state: 'attached' })
}
