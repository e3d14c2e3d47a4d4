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

/** Rules of axe whose verdict a colour scheme can change, of those that it applies by itself. */
const aboutColours = ['color-contrast', 'link-in-text-block']

/** What axe calls serious or critical on the open page, each with where it is. `colours`: of them alone. */
export async function seriousProblems(page: Page, about: 'everything' | 'colours' = 'everything'): Promise<string[]> {
  await stillPictures(page)
  // The pages have no frames: one look at the page itself, of which nothing but problems is told. Otherwise each would be handed over whole to
  // a second, empty page, there to be judged.
  const axe = new AxeBuilder({ page }).setLegacyMode().options({ resultTypes: ['violations'] })
  const { violations } = await (about === 'colours' ? axe.withRules(aboutColours) : axe).analyze()
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 160)).join(' | ')}`)
}
