import { procedure, router } from '../http/trpc/trpc.ts'
import { cancelStoreJob, startStoreJob } from './change-jobs.ts'
import { getStoreJob, listStoreJobs } from './list-jobs.ts'
import { startStoreJobInput, storeJobGetInput, storeJobListInput, storeJobPage, storeJobView } from './schema.ts'

export const storeJobRouter = router({
  list: procedure
    .meta({
      permission: 'vdisk.read',
      place: 'visible',
      rest: { method: 'GET', path: '/store-jobs', summary: 'Work of edges’ stores, newest first' },
    })
    .input(storeJobListInput)
    .output(storeJobPage)
    .query(({ ctx, input }) => listStoreJobs(ctx, input)),
  get: procedure
    .meta({
      permission: 'vdisk.read',
      place: { kind: 'store_job', id: 'jobId' },
      rest: { method: 'GET', path: '/store-jobs/{jobId}', summary: 'How far a store’s job is' },
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
        summary: 'Let an edge verify its store, or free what no version holds',
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
      rest: { method: 'POST', path: '/store-jobs/{jobId}/cancel', summary: 'Cancel a store’s job' },
    })
    .input(storeJobGetInput)
    .output(storeJobView)
    .mutation(({ ctx, input }) => cancelStoreJob(ctx, input.jobId)),
})
