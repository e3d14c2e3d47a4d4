import { procedure, router } from '../http/trpc/trpc.ts'
import { getNetworkReport } from './get-network-report.ts'
import { networkReportInput, networkReportView } from './schema.ts'

export const networkRouter = router({
  report: procedure
    .meta({
      permission: 'boot.read',
      place: 'visible',
      rest: {
        method: 'GET',
        path: '/network-report',
        summary: 'Loss, order, round trip, links and packet sizes, by segment and network card',
      },
    })
    .input(networkReportInput)
    .output(networkReportView)
    .query(({ ctx, input }) => getNetworkReport(ctx, input)),
})
