import { procedure, router } from '../http/trpc/trpc.ts'
import { bootProgramSetsInput, bootProgramSetsView, chosenSetResult, setOfSiteInput } from '../rules/boot-programs.ts'
import { changedObject, deletedObject } from '../rules/changed-object.ts'
import { restoring } from '../trash/restore-router.ts'
import { createSite, removeSite, setCacheCopies, setCapture, updateSite } from './change-site.ts'
import { chooseForSite, getBootProgramSets } from './choose-boot-programs.ts'
import { moveSite } from './move-site.ts'
import { getSite, listSites } from './read-sites.ts'
import {
  createSiteInput,
  moveSiteInput,
  removeSiteInput,
  setCacheCopiesInput,
  setCacheCopiesResult,
  setCaptureInput,
  setCaptureResult,
  siteDetail,
  siteGetInput,
  siteListInput,
  sitePage,
  updateSiteInput,
} from './schema.ts'

export const siteRouter = router({
  list: procedure
    .meta({
      permission: 'site.read',
      place: 'visible',
      rest: { method: 'GET', path: '/sites', summary: 'Sites' },
    })
    .input(siteListInput)
    .output(sitePage)
    .query(({ ctx, input }) => listSites(ctx, input)),
  get: procedure
    .meta({
      permission: 'site.read',
      place: { kind: 'site', id: 'siteId' },
      rest: { method: 'GET', path: '/sites/{siteId}', summary: 'A site' },
    })
    .input(siteGetInput)
    .output(siteDetail)
    .query(({ ctx, input }) => getSite(ctx, input.siteId)),
  bootProgramSets: procedure
    .meta({
      permission: 'site.read',
      place: { kind: 'site', id: 'siteId' },
      rest: {
        method: 'GET',
        path: '/sites/{siteId}/boot-program-sets',
        summary: 'Boot programs that the edges of a site have',
      },
    })
    .input(bootProgramSetsInput)
    .output(bootProgramSetsView)
    .query(({ ctx, input }) => getBootProgramSets(ctx, input.siteId)),
  setBootProgramSet: procedure
    .meta({
      permission: 'site.change',
      place: { kind: 'site', id: 'siteId' },
      rest: {
        method: 'PUT',
        path: '/sites/{siteId}/boot-program-set',
        summary: 'Choose the boot programs of a site',
      },
    })
    .input(setOfSiteInput)
    .output(chosenSetResult)
    .mutation(({ ctx, input }) => chooseForSite(ctx, input)),
  setCapture: procedure
    .meta({
      permission: 'site.change',
      place: { kind: 'site', id: 'siteId' },
      rest: {
        method: 'PUT',
        path: '/sites/{siteId}/capture',
        summary: 'Choose which boots a site captures packets of',
      },
    })
    .input(setCaptureInput)
    .output(setCaptureResult)
    .mutation(({ ctx, input }) => setCapture(ctx, input)),
  setCacheCopies: procedure
    .meta({
      permission: 'site.change',
      place: { kind: 'site', id: 'siteId' },
      rest: {
        method: 'PUT',
        path: '/sites/{siteId}/cache-copies',
        summary: 'Choose how often a site copies write caches to a second edge',
      },
    })
    .input(setCacheCopiesInput)
    .output(setCacheCopiesResult)
    .mutation(({ ctx, input }) => setCacheCopies(ctx, input)),
  create: procedure
    .meta({
      permission: 'site.change',
      place: { kind: 'farm', id: 'farmId' },
      rest: { method: 'POST', path: '/sites', summary: 'Create a site', creates: '/sites/{id}' },
    })
    .input(createSiteInput)
    .output(changedObject)
    .mutation(({ ctx, input }) => createSite(ctx, input)),
  update: procedure
    .meta({
      permission: 'site.change',
      place: { kind: 'site', id: 'siteId' },
      rest: { method: 'PATCH', path: '/sites/{siteId}', summary: 'Edit a site' },
    })
    .input(updateSiteInput)
    .output(changedObject)
    .mutation(({ ctx, input }) => updateSite(ctx, input)),
  move: procedure
    .meta({
      permission: 'site.change',
      place: [
        { kind: 'site', id: 'siteId' },
        { kind: 'farm', id: 'farmId' },
      ],
      rest: { method: 'POST', path: '/sites/{siteId}/move', summary: 'Move a site to another farm' },
    })
    .input(moveSiteInput)
    .output(changedObject)
    .mutation(({ ctx, input }) => moveSite(ctx, input)),
  remove: procedure
    .meta({
      permission: 'site.change',
      place: { kind: 'site', id: 'siteId' },
      rest: { method: 'DELETE', path: '/sites/{siteId}', summary: 'Move a site to the trash' },
    })
    .input(removeSiteInput)
    .output(deletedObject)
    .mutation(({ ctx, input }) => removeSite(ctx, input)),
  restore: restoring('site'),
})
