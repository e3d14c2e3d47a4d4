import { startReceiver } from '@bootfarm/api/testing/webhook-receiver'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePorts } from '../../scripts/lib/free-ports.mjs'
import { webProgram } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

let api: Awaited<ReturnType<typeof startReceiver>>
let web: RunningProcess
let webUrl: string

/** The dashboard's server in front of an API that records its requests. */
beforeAll(async () => {
  api = await startReceiver()
  const [port] = await freePorts(1)
  webUrl = `http://127.0.0.1:${port}`
  web = new RunningProcess(process.execPath, [webProgram], {
    NODE_ENV: 'production',
    PORT: String(port),
    HOSTNAME: '127.0.0.1',
    API_URL: new URL(api.url).origin,
    WEB_URL: webUrl,
  })
  await web.waitFor(/Ready in/)
})
afterAll(async () => {
  await web?.stop()
  await api?.close()
})

test('the dashboard’s server appends the sender of a request to the sender’s own claims', async () => {
  const body = '{}'
  await fetch(`${webUrl}/api/auth/sign-in/email`, { method: 'POST', body })
  await fetch(`${webUrl}/api/auth/sign-in/email`, {
    method: 'POST',
    body,
    headers: { 'x-forwarded-for': '203.0.113.9' },
  })
  expect(api.received.map(({ headers }) => headers['x-forwarded-for'])).toEqual(['127.0.0.1', '203.0.113.9, 127.0.0.1'])
})
