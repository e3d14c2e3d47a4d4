import {
  bootProgramSetsInput,
  bootProgramSetsView,
  chosenSetResult,
  setOfSiteInput,
} from '../../domain/boot-programs.ts'
import {
  setCaptureInput,
  setCaptureResult,
  siteDetail,
  siteGetInput,
  siteListInput,
  sitePage,
} from '../../domain/farm-view.ts'
import { getBootProgramSets } from '../../services/site/boot-program-sets.ts'
import { chooseForSite } from '../../services/site/choose-boot-programs.ts'
import { getSite } from '../../services/site/get-site.ts'
import { listSites } from '../../services/site/list-sites.ts'
import { setCapture } from '../../services/site/set-capture.ts'
import { procedure, router } from '../trpc.ts'

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
      rest: { method: 'PUT', path: '/sites/{siteId}/capture', summary: 'Choose which packets a site keeps' },
    })
    .input(setCaptureInput)
    .output(setCaptureResult)
    .mutation(({ ctx, input }) => setCapture(ctx, input)),
})
