'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { FormDialog } from '../../components/dialog'
import { ObjectPicker } from '../../components/object-picker'
import { useToast } from '../../components/toast'
import { countOf } from '../../lib/format-quantity'
import { formProblem, readableError } from '../../lib/readable-error'
import { type RouterInputs, useTRPC, useTRPCClient } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { useMay } from '../session/use-may'
import { PlanTable } from './plan-table'

const template =
  '\uFEFFmac,name,collection,enabled,tags,vdisk,boot_programs,boot_menu,device_type,personality.ROOM\r\n02:00:00:00:00:01,pc-01,Lab,yes,"floor-1, blue",none,none,collection,production,A1\r\n'

/** Devices out as a table, and in again. */
export function CsvButtons({ filter }: { filter: RouterInputs['device']['exportCsv'] }) {
  const client = useTRPCClient()
  const showToast = useToast()
  const [importing, setImporting] = useState(false)
  const mayImport = useMay('device.change')
  const save = useMutation({
    mutationFn: () => client.device.exportCsv.query(filter),
    onSuccess: ({ csv, count, isCut }) => {
      saveFile('devices.csv', csv)
      showToast({
        title: `${countOf(count, 'device')} exported.`,
        ...(isCut && { text: 'The search matched more devices. A file holds at most 10,000.' }),
      })
    },
    onError: (error) => showToast({ title: 'Could not export devices.', text: readableError(error), tone: 'failed' }),
  })
  return (
    <>
      <Button busy={save.isPending} onClick={() => save.mutate()}>
        Export CSV
      </Button>
      {mayImport && <Button onClick={() => setImporting(true)}>Import CSV</Button>}
      {importing && <ImportDialog onClose={() => setImporting(false)} />}
    </>
  )
}

function ImportDialog({ onClose }: { onClose: () => void }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const showToast = useToast()
  const sites = usePicker('site', {})
  const [chosenId, setChosenId] = useState('')
  const [csv, setCsv] = useState('')
  const site = sites.itemOf(chosenId) ?? sites.items[0]
  const take = useMutation(
    trpc.device.importCsv.mutationOptions({
      onSuccess: (plan) => {
        if (!plan.applied) return
        void queryClient.invalidateQueries()
        showToast({
          title: `${countOf(plan.createdCount, 'device')} created, ${plan.changedCount} updated.`,
          tone: 'ready',
        })
        onClose()
      },
    }),
  )
  const plan = take.data
  const isReady = plan !== undefined && plan.refusedCount === 0
  return (
    <FormDialog
      title="Import devices"
      action={isReady ? 'Import devices' : 'Preview changes'}
      wide
      busy={take.isPending}
      disabled={!site || csv === '' || (plan !== undefined && !isReady)}
      failure={formProblem(take.error)}
      onClose={onClose}
      onSubmit={() => site && take.mutate({ siteId: site.id, csv, preview: !isReady })}
    >
      <p className="text-ink-soft text-sm">
        Rows are matched by MAC address, then by name, within this site. Other rows create devices. Empty cells change
        nothing. If one row is invalid, nothing is imported.{' '}
        <button
          type="button"
          className="rounded underline underline-offset-4"
          onClick={() => saveFile('devices-template.csv', template)}
        >
          Download a template
        </button>
      </p>
      <ObjectPicker
        label="Site"
        picker={sites}
        value={site?.id ?? ''}
        labelOf={({ name }) => name}
        onChange={(value) => {
          setChosenId(value)
          take.reset()
        }}
      />
      <label className="flex flex-col gap-1.5 font-medium text-ink-soft text-xs">
        CSV file
        <input
          type="file"
          accept=".csv,text/csv"
          className="text-ink text-sm"
          onChange={async (event) => {
            take.reset()
            setCsv((await event.target.files?.[0]?.text()) ?? '')
          }}
        />
      </label>
      {plan && <PlanTable plan={plan} />}
    </FormDialog>
  )
}

/** Hands a text to the browser as a file to save. */
function saveFile(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/csv;charset=utf-8' }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}
