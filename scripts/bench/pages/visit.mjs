import { setTimeout as delay } from 'node:timers/promises'
import { UserError } from '../../lib/fail.mjs'

/** For a page to show what it is about, and for one paint to follow another, on a busy machine. */
const pageLimitMs = 60_000
/** After the last paint that was larger than the ones before. */
const quietMs = 1_500
const lookEveryMs = 100
export const slowdown = 4

/**
 * Opens an address and measures it until nothing larger is painted any more.
 * @param {import('@playwright/test').Page} page of a context whose cache decides what is loaded
 * @param {{ url: string, content: import('@playwright/test').Locator }} target `content` is visible once the page shows
 *   what it is about
 */
export async function visit(page, { url, content }) {
  let requestCount = 0
  const count = () => {
    requestCount += 1
  }
  page.on('request', count)
  await page.goto(url, { waitUntil: 'commit' })
  await content.first().waitFor({ timeout: pageLimitMs })
  const deadline = performance.now() + pageLimitMs
  // Not waitForFunction, which the pages' content security policy forbids.
  while (!(await page.evaluate(isQuiet, quietMs))) {
    if (performance.now() > deadline) throw new UserError(`${url} still painted after ${pageLimitMs / 1000} s.`)
    await delay(lookEveryMs)
  }
  page.off('request', count)
  return { ...(await page.evaluate(readFigures)), requestCount }
}

/** Makes a page at a quarter of the processor's speed, which keeps its largest paints. */
export async function slowPage(context) {
  const page = await context.newPage()
  await page.addInitScript(keepPaints)
  const devTools = await context.newCDPSession(page)
  await devTools.send('Emulation.setCPUThrottlingRate', { rate: slowdown })
  return page
}

// These run in the page.

function keepPaints() {
  window.largestPaints = []
  new PerformanceObserver((list) => {
    for (const { startTime, element } of list.getEntries())
      window.largestPaints.push({ at: startTime, seenAt: performance.now(), what: nameOf(element) })
  }).observe({ type: 'largest-contentful-paint', buffered: true })

  function nameOf(element) {
    return element ? `${element.tagName.toLowerCase()} "${element.textContent.trim().slice(0, 40)}"` : 'removed'
  }
}

function isQuiet(quietMs) {
  const last = window.largestPaints.at(-1)
  return document.readyState === 'complete' && last !== undefined && performance.now() - last.seenAt > quietMs
}

function readFigures() {
  const [navigation] = performance.getEntriesByType('navigation')
  const scripts = performance.getEntriesByType('resource').filter(({ name }) => new URL(name).pathname.endsWith('.js'))
  const last = window.largestPaints.at(-1)
  return {
    lcpMs: last.at,
    lcpOf: last.what,
    ttfbMs: navigation.responseStart,
    // What came over the network: a script of the cache counts as 0, and headers count.
    scriptBytes: scripts.reduce((sum, { transferSize }) => sum + transferSize, 0),
    documentBytes: navigation.transferSize,
  }
}
