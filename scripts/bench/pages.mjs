import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { launchChromium } from '../../e2e/lib/lab/chromium.ts'
import { UserError } from '../lib/fail.mjs'
import { say, step } from '../lib/progress.mjs'
import { withProduct } from '../test/product.mjs'
import { slowdown, slowPage, visit } from './pages/visit.mjs'
import { keepResult } from './results.mjs'

const goals = { lcpMs: 1_200, signInScriptBytes: 150_000 }
/** The demo's devices boot once, before anything is measured. */
const waveIntervalSeconds = 3_600
/** For the demo's history to arrive, and for a first boot to be ready. */
const demoLimitMs = 180_000
const lookEveryMs = 1_000
const caches = ['cold', 'warm']

const byRole = (role, options) => (page) => page.getByRole(role, options)
const pages = [
  { name: 'sign-in', path: '/sign-in', isOpen: true, content: byRole('button', { name: 'Sign in' }) },
  { name: 'overview', path: '/', content: byRole('table', { name: 'Latest boots' }) },
  { name: 'boots', path: '/boots', content: byRole('table', { name: 'Boots' }) },
  { name: 'boot', path: (bootId) => `/boots/${bootId}`, content: byRole('img', { name: /^Waterfall of/ }) },
]

/**
 * Prints how long a slow browser takes to paint the first load of each page, with an empty cache and with a full one.
 * @param {{ rounds: number, write: boolean, only: string }} options
 */
export async function benchPages({ rounds, write, only }) {
  const chosen = pages.filter(({ name }) => name === only)
  const wanted = chosen.length > 0 ? chosen : pages.filter(({ name }) => name.includes(only))
  if (wanted.length === 0) throw new UserError(`no page is named ${only}: ${pages.map(({ name }) => name).join('; ')}.`)
  const scratch = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-pages-'))
  try {
    const measured = await withProduct(scratch, (env) => measureAll(env, wanted, rounds), [
      '--wave-interval',
      String(waveIntervalSeconds),
    ])
    const result = {
      date: new Date().toISOString(),
      command: `npm run bench -- pages --rounds ${rounds}${only ? ` --only '${only}'` : ''}`,
      machine: { model: os.cpus()[0]?.model ?? '', processors: os.cpus().length },
      measured,
    }
    process.stdout.write(`\n${asMarkdown(result)}\n`)
    if (write) keepResult('pages', result, asMarkdown(result))
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

async function measureAll(env, wanted, rounds) {
  const browser = await launchChromium()
  try {
    const session = await signIn(browser, env)
    const bootId = await step('Waiting for the demo’s boots', () => readyBoot(browser, session, env))
    const measured = []
    // The first round is not kept: the server has not run the pages before.
    for (let round = -1; round < rounds; round++)
      for (const { name, path: address, isOpen = false, content } of wanted) {
        const url = env.BOOTFARM_WEB_URL + (typeof address === 'string' ? address : address(bootId))
        const target = { url, content, session: isOpen ? undefined : session }
        for (const one of await visitTwice(browser, target)) {
          const kept = { round, name, loadBefore: os.loadavg()[0], ...one }
          if (round >= 0) measured.push(kept)
          say(`${name}, ${kept.cache} cache: LCP ${kept.lcpMs.toFixed(0)} ms, ${kept.requestCount} requests`)
        }
      }
    return measured
  } finally {
    await browser.close()
  }
}

/** In a context of its own, whose cache is empty at first. */
async function visitTwice(browser, { url, content, session }) {
  const context = await newContext(browser, session)
  try {
    const visits = []
    for (const cache of caches) {
      const page = await slowPage(context)
      visits.push({ cache, ...(await visit(page, { url, content: content(page) })) })
      await page.close()
    }
    return visits
  } finally {
    await context.close()
  }
}

function newContext(browser, storageState) {
  return browser.newContext({ storageState, viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' })
}

/** @returns the cookies of somebody who has signed in and has opened a page before */
async function signIn(browser, env) {
  const context = await newContext(browser)
  const page = await context.newPage()
  await page.goto(`${env.BOOTFARM_WEB_URL}/sign-in`)
  await page.getByLabel('E-mail').fill(env.BOOTFARM_DEMO_EMAIL)
  await page.getByLabel('Password').fill(env.BOOTFARM_DEMO_PASSWORD)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('navigation', { name: 'Main' }).waitFor()
  const session = await context.storageState()
  await context.close()
  return session
}

/** @returns a boot of the demo's devices that is ready, once the demo's history has arrived and nothing boots */
async function readyBoot(browser, session, env) {
  const context = await newContext(browser, session)
  const ask = async (procedure, input) => {
    const query = new URLSearchParams({ input: JSON.stringify(input) })
    const answer = await context.request.get(`${env.BOOTFARM_WEB_URL}/api/trpc/${procedure}?${query}`)
    if (!answer.ok()) throw new UserError(`the API answered ${answer.status()} to ${procedure}: ${await answer.text()}`)
    return (await answer.json()).result.data
  }
  const deadline = performance.now() + demoLimitMs
  let countBefore = -1
  try {
    for (;;) {
      const [farm] = (await ask('farm.list', { limit: 1 })).items
      const { byDay } = await ask('farm.overview', { farmId: farm.id })
      const count = byDay.reduce((sum, day) => sum + day.readyCount + day.failedCount, 0)
      const booting = await ask('boot.list', { outcome: 'booting', limit: 1 })
      const [boot] = (await ask('boot.list', { outcome: 'ready', origin: 'simulated', limit: 1 })).items
      if (boot && booting.items.length === 0 && count === countBefore) return boot.id
      countBefore = count
      if (performance.now() > deadline)
        throw new UserError(`after ${demoLimitMs / 1000} s, the demo still boots, or none of its devices is ready.`)
      await delay(lookEveryMs)
    }
  } finally {
    await context.close()
  }
}

function asMarkdown({ date, command, machine, measured }) {
  const loads = measured.map(({ loadBefore }) => loadBefore)
  const rows = pages.flatMap(({ name }) =>
    caches.flatMap((cache) => {
      const visits = measured.filter((one) => one.name === name && one.cache === cache)
      return visits.length === 0 ? [] : [rowOf(name, cache, visits)]
    }),
  )
  const missed = rows.flatMap(({ misses }) => misses)
  return `# The dashboard's first load

${date}, ${machine.processors} processors (${machine.model}), load ${Math.min(...loads).toFixed(2)} to ${Math.max(...loads).toFixed(2)} while it ran. Command:
\`${command}\`

The whole product with the demo's history on loopback, and Chromium (headless, 1280 x 800 pixels) with its processor
slowed down ${slowdown} times. Cold: nothing in the browser's cache. Warm: the page was opened once before. Scripts are as they
came over the network, compressed. One round before these is not counted.

| page | cache | LCP median, ms | LCP max | TTFB median, ms | TTFB max | scripts, kB | document, kB | requests |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
${rows.map(({ text }) => text).join('\n')}

The largest paint: ${rows.map(({ name, cache, largest }) => `${name}, ${cache}: ${largest}`).join('; ')}.

Goals: LCP of overview, boots and boot at most ${goals.lcpMs / 1000} s in each round; sign-in at most ${goals.signInScriptBytes / 1000} kB of scripts.
${missed.length === 0 ? '**Reached.**' : `**Missed** by: ${missed.join(', ')}.`}
`
}

function rowOf(name, cache, visits) {
  const median = (of) => visits.map(of).toSorted((a, b) => a - b)[Math.floor(visits.length / 2)]
  const max = (of) => Math.max(...visits.map(of))
  const [lcp, ttfb, scripts] = [({ lcpMs }) => lcpMs, ({ ttfbMs }) => ttfbMs, ({ scriptBytes }) => scriptBytes]
  const cells = [
    name,
    cache,
    ...[median(lcp), max(lcp)].map((ms) => ms.toFixed(0)),
    ...[median(ttfb), max(ttfb)].map((ms) => ms.toFixed(0)),
    (max(scripts) / 1000).toFixed(1),
    (max(({ documentBytes }) => documentBytes) / 1000).toFixed(1),
    median(({ requestCount }) => requestCount),
  ]
  const misses = []
  if (name === 'sign-in') {
    if (max(scripts) > goals.signInScriptBytes) misses.push(`${name}, ${cache} cache`)
  } else if (max(lcp) > goals.lcpMs) misses.push(`${name}, ${cache} cache`)
  return { name, cache, misses, largest: visits.at(-1).lcpOf, text: `| ${cells.join(' | ')} |` }
}
