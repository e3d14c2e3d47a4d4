import { AxeBuilder } from '@axe-core/playwright'
import type { Page } from '@playwright/test'

/** A colour that is half faded in has a contrast of its own: what fades and slides in has to have arrived. Endless ones do not count. */
async function stillPictures(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const arriving = document
      .getAnimations()
      .filter(({ effect }) => Number.isFinite(Number(effect?.getComputedTiming().endTime)))
    await Promise.all(arriving.map(({ finished }) => finished.catch(() => undefined)))
  })
}

/** What axe calls serious or critical on the open page, each with where it is. */
export async function seriousProblems(page: Page): Promise<string[]> {
  await stillPictures(page)
  const { violations } = await new AxeBuilder({ page }).analyze()
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 160)).join(' | ')}`)
}
