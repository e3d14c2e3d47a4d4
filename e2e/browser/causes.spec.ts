import { randomUUID } from 'node:crypto'
import path from 'node:path'
import { bootCauses, bootCauseText } from '@bootfarm/proto/boot-phases'
import type { BootReport } from '@bootfarm/proto/uplink'
import { required } from '../lib/control-plane/api-client.ts'
import { ReportSender } from '../lib/edge/report-sender.ts'
import { expect, test } from '../lib/lab/page-test.ts'

/** No edge restarts often enough to reach this epoch. */
const unusedEpoch = 900_000_000
const hourMs = 3_600_000
const noTraffic = {
  bytesIn: 0,
  bytesOut: 0,
  packetsIn: 0,
  packetsOut: 0,
  retries: 0,
  missingFragments: 0,
  reads: 0,
}

/** A device's report is shown as text, even if it contains markup. */
const textOf = (cause: string) => `${cause}: <b>6.1</b> "&amp;" \${x}`

test('the page of a failed boot gives the reason, the remedy and the reported text, for every cause', async ({
  page,
}) => {
  const boots = bootCauses.map(
    (cause, index): BootReport => ({
      id: randomUUID(),
      revision: 1,
      mac: `02:bf:cc:00:00:${index.toString(16).padStart(2, '0')}`,
      simulated: false,
      generated: false,
      startedUnixMs: Date.now() - hourMs,
      reconnects: 0,
      phases: [{ name: 'loader', startUs: 0, durationUs: 1000, source: 'observed', ...noTraffic }],
      outcome: { kind: 'failed', phase: 'loader', cause, text: textOf(cause) },
    }),
  )
  const uplink = new ReportSender(required('BOOTFARM_API_URL'), path.join(required('BOOTFARM_DATA'), 'edge'))
  await uplink.report(unusedEpoch, boots)

  for (const [index, cause] of bootCauses.entries()) {
    await page.goto(`/boots/${boots[index]?.id}`)
    const why = page.getByRole('region', { name: 'Cause' })
    const { sentence, remedy } = bootCauseText(cause)
    await expect(why.getByText(sentence)).toBeVisible()
    await expect(why.getByText(remedy)).toBeVisible()
    await expect(why.getByText(textOf(cause))).toBeVisible()
  }
})
