'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Button, DownloadLink } from '../../components/button'
import { FormDialog } from '../../components/dialog'
import { FileField, Notice } from '../../components/field'
import { ObjectPicker } from '../../components/object-picker'
import { useToast } from '../../components/toast'
import { countOf, formatCount } from '../../lib/format-quantity'
import { formProblem, type RouterInputs, type RouterOutputs, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { useMay } from '../session/use-may'

const template =
  '\uFEFFmac,name,collection,enabled,tags,vdisk,boot_programs,boot_menu,device_type,personality.ROOM\r\n02:00:00:00:00:01,pc-01,Lab,yes,"floor-1, blue",none,none,collection,production,A1\r\n'

/** Devices out as a table, and in again. */
export function CsvButtons({ filter }: { filter: RouterInputs['device']['listIds'] }) {
  const [importing, setImporting] = useState(false)
  const mayImport = useMay('device.change')
  return (
    <>
      <DownloadLink href={exportHref(filter)}>Export CSV</DownloadLink>
      {mayImport && <Button onClick={() => setImporting(true)}>Import CSV</Button>}
      {importing && <ImportDialog onClose={() => setImporting(false)} />}
    </>
  )
}

/** The address of the same devices as a file. */
function exportHref(filter: RouterInputs['device']['listIds']): string {
  const given = Object.entries(filter).filter(([, value]) => value !== undefined)
  return `/api/v1/device-exports?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`
}

function ImportDialog({ onClose }: { onClose: () => void }) {
  const sites = usePicker('site', {})
  const [chosenId, setChosenId] = useState('')
  const [csv, setCsv] = useState('')
  const site = sites.itemOf(chosenId) ?? sites.items[0]
  const take = useImport(onClose)
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
        onChange={(value) => {
          setChosenId(value)
          take.reset()
        }}
      />
      <FileField
        label="CSV file"
        accept=".csv,text/csv"
        onChoose={async (file) => {
          take.reset()
          setCsv((await file?.text()) ?? '')
        }}
      />
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

type Plan = RouterOutputs['device']['changeMany']

const rowsShownMax = 100
const kinds = { created: 'new', changed: 'changed', unchanged: 'unchanged', refused: 'refused' }

/** Lists the planned result of each line, problems first. */
export function PlanTable({ plan }: { plan: Plan }) {
  const rows = plan.rows.slice(0, rowsShownMax)
  const counts = [
    `${formatCount(plan.createdCount)} new`,
    `${formatCount(plan.changedCount)} changed`,
    `${formatCount(plan.unchangedCount)} unchanged`,
  ]
  return (
    <div className="flex flex-col gap-3">
      {plan.refusedCount > 0 ? (
        <Notice tone="silent">
          {countOf(plan.refusedCount, 'invalid row')}: nothing was changed. Otherwise: {counts.join(', ')}.
        </Notice>
      ) : (
        <Notice tone="live">{counts.join(', ')}.</Notice>
      )}
      <section
        aria-label="Preview of changes"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
        tabIndex={0}
        className="max-h-64 overflow-auto rounded-md border border-line"
      >
        <table className="w-full text-left text-xs">
          <caption className="sr-only">Preview of changes</caption>
          <tbody>
            {rows.map((row) => (
              <tr key={`${row.line} ${row.deviceId} ${row.mac}`} className="border-line border-t first:border-t-0">
                <td className="px-3 py-1.5 text-ink-faint">{row.line !== null && `line ${row.line}`}</td>
                <th scope="row" className="px-2 py-1.5 font-medium">
                  {row.name || row.mac}
                </th>
                <td className="px-2 py-1.5">{kinds[row.kind]}</td>
                <td className="w-full px-3 py-1.5">
                  {row.problems.length > 0 ? (
                    <span className="text-failed">{row.problems.join(' ')}</span>
                  ) : (
                    <span className="text-ink-soft">{row.changes.join(', ')}</span>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {plan.rows.length > rowsShownMax && (
        <p className="text-ink-soft text-xs">Only the first {rowsShownMax} are shown.</p>
      )}
    </div>
  )
}

function useImport(onDone: () => void) {
  const queryClient = useQueryClient()
  const showToast = useToast()
  return useMutation(
    useTRPC().device.importCsv.mutationOptions({
      onSuccess: (plan) => {
        if (!plan.applied) return
        void queryClient.invalidateQueries()
        showToast({
          title: `${countOf(plan.createdCount, 'device')} created, ${plan.changedCount} updated.`,
          tone: 'ready',
        })
        onDone()
      },
    }),
  )
}
