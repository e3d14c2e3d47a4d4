import { AxeBuilder } from '@axe-core/playwright'
import type { Page } from '@playwright/test'

/**
 * A colour that is still fading in has a different contrast, so wait until fades and slides have finished. Endless
 * animations do not count.
 */
async function stillPictures(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const arriving = document
      .getAnimations()
      .filter(({ effect }) => Number.isFinite(Number(effect?.getComputedTiming().endTime)))
    await Promise.all(arriving.map(({ finished }) => finished.catch(() => undefined)))
  })
}

/** The default rules of axe whose verdict can depend on the colour scheme. */
const aboutColours = ['color-contrast', 'link-in-text-block']

/** Returns what axe calls serious or critical on the open page, with its location. `colours`: checks colours only. */
export async function seriousProblems(page: Page, about: 'everything' | 'colours' = 'everything'): Promise<string[]> {
  await stillPictures(page)
  // The pages have no frames, so axe runs once in the page itself and returns problems only. By default it copies the
  // whole result into a second, empty page to evaluate it there.
  const axe = new AxeBuilder({ page }).setLegacyMode().options({ resultTypes: ['violations'] })
  const { violations } = await (about === 'colours' ? axe.withRules(aboutColours) : axe).analyze()
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 160)).join(' | ')}`)
}
