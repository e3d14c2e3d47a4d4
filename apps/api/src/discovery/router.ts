import { procedure, router } from '../http/trpc/trpc.ts'
import { getRules, setRules } from './adoption-rules.ts'
import { applyRules, previewRules } from './apply-rules.ts'
import { adoptDiscovered, ignoreDiscovered } from './ignore-discovered.ts'
import { countWaiting, getDiscovered, listDiscovered } from './list-discovered.ts'
import {
  adoptInput,
  adoptResult,
  discoveredDevice,
  discoveredGetInput,
  discoveredListInput,
  discoveredPage,
  ignoreInput,
  ignoreResult,
  rulesApplied,
  rulesInput,
  rulesPreview,
  rulesView,
  setRulesInput,
  waitingCountResult,
} from './schema.ts'

export const discoveredRouter = router({
  list: procedure
    .meta({
      permission: 'discovery.read',
      place: 'visible',
      rest: { method: 'GET', path: '/discovered-devices', summary: 'Unregistered machines' },
    })
    .input(discoveredListInput)
    .output(discoveredPage)
    .query(({ ctx, input }) => listDiscovered(ctx, input)),
  waitingCount: procedure
    .meta({
      permission: 'discovery.read',
      place: 'visible',
      rest: {
        method: 'GET',
        path: '/discovered-devices/waiting-count',
        summary: 'Count of unregistered machines that wait for a decision',
      },
    })
    .output(waitingCountResult)
    .query(({ ctx }) => countWaiting(ctx)),
  get: procedure
    .meta({
      permission: 'discovery.read',
      place: 'visible',
      rest: { method: 'GET', path: '/discovered-devices/{discoveredId}', summary: 'An unregistered machine' },
    })
    .input(discoveredGetInput)
    .output(discoveredDevice)
    .query(({ ctx, input }) => getDiscovered(ctx, input)),
  adopt: procedure
    .meta({
      permission: 'discovery.decide',
      place: { kind: 'site', id: 'siteId' },
      rest: {
        method: 'POST',
        path: '/sites/{siteId}/discovered-devices/adopt',
        summary: 'Adopt unregistered machines',
      },
    })
    .input(adoptInput)
    .output(adoptResult)
    .mutation(({ ctx, input }) => adoptDiscovered(ctx, input)),
  ignore: procedure
    .meta({
      permission: 'discovery.decide',
      place: { kind: 'site', id: 'siteId' },
      rest: {
        method: 'POST',
        path: '/sites/{siteId}/discovered-devices/ignore',
        summary: 'Ignore unregistered machines, or stop ignoring them',
      },
    })
    .input(ignoreInput)
    .output(ignoreResult)
    .mutation(({ ctx, input }) => ignoreDiscovered(ctx, input)),
  rules: procedure
    .meta({
      permission: 'discovery.read',
      place: { kind: 'site', id: 'siteId' },
      rest: {
        method: 'GET',
        path: '/sites/{siteId}/adoption-rules',
        summary: 'Rules that adopt machines automatically',
      },
    })
    .input(rulesInput)
    .output(rulesView)
    .query(({ ctx, input }) => getRules(ctx, input.siteId)),
  setRules: procedure
    // Rules adopt without a person.
    .meta({
      permission: 'discovery.rules',
      place: { kind: 'site', id: 'siteId' },
      rest: { method: 'PUT', path: '/sites/{siteId}/adoption-rules', summary: 'Replace the rules' },
    })
    .input(setRulesInput)
    .output(rulesView)
    .mutation(({ ctx, input }) => setRules(ctx, input)),
  previewRules: procedure
    .meta({
      permission: 'discovery.read',
      place: { kind: 'site', id: 'siteId' },
      rest: {
        method: 'GET',
        path: '/sites/{siteId}/adoption-rules/preview',
        summary: 'Preview what the rules would adopt now',
      },
    })
    .input(rulesInput)
    .output(rulesPreview)
    .query(({ ctx, input }) => previewRules(ctx, input.siteId)),
  applyRules: procedure
    .meta({
      permission: 'discovery.decide',
      place: { kind: 'site', id: 'siteId' },
      rest: {
        method: 'POST',
        path: '/sites/{siteId}/adoption-rules/apply',
        summary: 'Adopt what the rules match',
      },
    })
    .input(rulesInput)
    .output(rulesApplied)
    .mutation(({ ctx, input }) => applyRules(ctx, input.siteId)),
})
