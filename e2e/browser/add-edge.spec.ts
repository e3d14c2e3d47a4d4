import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { required } from '../lib/control-plane/api-client.ts'
import { Tenant } from '../lib/control-plane/tenant.ts'
import { edgePorts, portArguments } from '../lib/edge/loopback-edge.ts'
import { expect, test } from '../lib/lab/page-test.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'
import { seriousProblems } from './axe.ts'
import { signInAs } from './demo-sign-in.ts'

test.use({ storageState: { cookies: [], origins: [] }, permissions: ['clipboard-read', 'clipboard-write'] })

test('“Add edge” shows a command whose token enrols an edge, and then shows the edge online', async ({ page }) => {
  const tenant = await Tenant.create('admin')
  const scratch = scratchDirectory()
  let edge: RunningProcess | undefined
  try {
    await signInAs(page, tenant.person)
    await page.goto(`/sites/${tenant.rows.siteId}`)
    await page.getByRole('button', { name: 'Add edge' }).click()
    const dialog = page.getByRole('dialog')
    await expect(dialog).toContainText('valid for one hour')
    await expect(dialog).toContainText('works only on this machine')
    await dialog.getByRole('button', { name: 'Generate install command' }).click()
    await expect(dialog.getByText(/Waiting for an edge to join/)).toBeVisible()
    expect(await seriousProblems(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Copy' }).click()
    await expect(dialog.getByText('Copied')).toBeVisible()
    const line = await page.evaluate(() => navigator.clipboard.readText())
    const [, token = '', url] =
      /^\{ echo token=(bfj_[\w-]+); curl -fsSL (\S+)\/install\/edge\.sh; \} \| sudo sh$/.exec(line) ?? []
    expect(url).toBe(required('BOOTFARM_WEB_URL'))

    const data = path.join(scratch.path, 'edge')
    const file = path.join(scratch.path, 'token')
    writeFileSync(file, token, { mode: 0o600 })
    const enrol = new RunningProcess(edgeProgram, ['enrol', '--url', url ?? '', '--token-file', file, '--data', data])
    expect(await enrol.ended, enrol.output).toBe(0)
    await expect(dialog.getByText(/has joined\. Waiting for its first heartbeat/)).toBeVisible()
    edge = new RunningProcess(edgeProgram, [
      'serve',
      '--data',
      data,
      '--listen',
      '127.0.0.1',
      '--dhcp',
      'off',
      ...portArguments(await edgePorts()),
    ])
    const online = dialog.getByText(/is online\.$/)
    await expect(online).toBeVisible()
    await online.getByRole('link').click()
    await expect(page.getByRole('region', { name: 'Machine' })).toContainText(/processors/)
    expect(await seriousProblems(page)).toEqual([])
  } finally {
    await edge?.stop()
    scratch.remove()
  }
})
