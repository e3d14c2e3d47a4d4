import { procedure, router } from '../http/trpc/trpc.ts'
import { cancelStoreJob, startStoreJob } from './change-jobs.ts'
import { getStoreJob, listStoreJobs } from './list-jobs.ts'
import { startStoreJobInput, storeJobGetInput, storeJobListInput, storeJobPage, storeJobView } from './schema.ts'

export const storeJobRouter = router({
  list: procedure
    .meta({
      permission: 'vdisk.read',
      place: 'visible',
      rest: { method: 'GET', path: '/store-jobs', summary: 'Storage jobs, newest first' },
    })
    .input(storeJobListInput)
    .output(storeJobPage)
    .query(({ ctx, input }) => listStoreJobs(ctx, input)),
  get: procedure
    .meta({
      permission: 'vdisk.read',
      place: { kind: 'store_job', id: 'jobId' },
      rest: { method: 'GET', path: '/store-jobs/{jobId}', summary: 'Progress of a storage job' },
    })
    .input(storeJobGetInput)
    .output(storeJobView)
    .query(({ ctx, input }) => getStoreJob(ctx, input.jobId)),
  start: procedure
    .meta({
      permission: 'vdisk.change',
      place: { kind: 'edge', id: 'edgeId' },
      rest: {
        method: 'POST',
        path: '/store-jobs',
        summary: 'Verify an edge’s store, or free unused space',
        creates: '/store-jobs/{id}',
      },
    })
    .input(startStoreJobInput)
    .output(storeJobView)
    .mutation(({ ctx, input }) => startStoreJob(ctx, input)),
  cancel: procedure
    .meta({
      permission: 'vdisk.change',
      place: { kind: 'store_job', id: 'jobId' },
      rest: { method: 'POST', path: '/store-jobs/{jobId}/cancel', summary: 'Cancel a storage job' },
    })
    .input(storeJobGetInput)
    .output(storeJobView)
    .mutation(({ ctx, input }) => cancelStoreJob(ctx, input.jobId)),
})
