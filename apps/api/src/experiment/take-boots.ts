import type { Events } from '../events/event-bus.ts'
import { departureOf } from './boot-departure.ts'

/**
 * Gives trials the boots that had their settings: the edge names the trial in the boot's report, and gave both with one
 * state. The first boot of a trial counts, and no other.
 */
export async function takeTrialBoots({ db, edge, boots }: Events['bootsReported']): Promise<void> {
  const { organizationId } = edge
  const said = boots.flatMap((report) => (report.trial ? [{ report, trialId: report.trial }] : []))
  // Most boots belong to none.
  if (said.length === 0) return
  const rows = said.map(({ report, trialId }) => ({
    trial_id: trialId,
    boot_id: report.id,
    device_id: report.deviceId,
  }))
  await db.$executeRaw`
    update experiment_trial as trial set state = 'booting', boot_id = said.boot_id, until_at = null
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as said (trial_id uuid, boot_id uuid, device_id uuid)
    where trial.organization_id = ${organizationId}::uuid and trial.id = said.trial_id
      and trial.device_id = said.device_id and trial.site_id = ${edge.siteId}::uuid
      and trial.state = 'ordered' and trial.boot_id is null`
  const trials = await db.experimentTrial.findMany({
    where: { organizationId, id: { in: said.map(({ trialId }) => trialId) }, state: 'booting', reason: null },
    select: { id: true, bootId: true, settings: true },
  })
  for (const { id, bootId, settings } of trials) {
    const report = said.find((one) => one.trialId === id && one.report.id === bootId)?.report
    const reason = report ? departureOf(report, settings) : null
    if (reason !== null)
      await db.experimentTrial.update({ where: { organizationId_id: { organizationId, id } }, data: { reason } })
  }
}
