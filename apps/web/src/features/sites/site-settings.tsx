'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { SelectField } from '../../components/field'
import { Panel } from '../../components/panel'
import { useToast } from '../../components/toast'
import { readableError } from '../../lib/readable-error'
import { type RouterInputs, type RouterOutputs, useTRPC } from '../../lib/trpc'
import { BootProgramChoice } from '../boot-programs/boot-program-choice'
import { useMay } from '../session/use-may'

type SiteDetail = RouterOutputs['site']['get']
type Capture = RouterInputs['site']['setCapture']['capture']

const captures: { value: Capture; label: string }[] = [
  { value: 'never', label: 'Off' },
  { value: 'failed', label: 'Failed boots only' },
  { value: 'always', label: 'All boots' },
]

/** What holds for all devices of the site; each choice is taken at once. */
export function SiteSettings({ site }: { site: SiteDetail }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const showToast = useToast()
  const mayChange = useMay('site.change')
  const options = {
    onSuccess: () => queryClient.invalidateQueries(trpc.site.pathFilter()),
    onError: (error: unknown) =>
      showToast({ title: `Could not update ${site.name}.`, text: readableError(error), tone: 'failed' as const }),
  }
  const choose = useMutation(trpc.site.setBootProgramSet.mutationOptions(options))
  const capture = useMutation(trpc.site.setCapture.mutationOptions(options))
  return (
    <Panel title="Settings">
      <div className="flex flex-col gap-4">
        <BootProgramChoice
          label="Boot programs"
          siteId={site.id}
          value={site.bootProgramSet}
          inherited="Edge default"
          inheritedSet={null}
          mayChange={mayChange}
          onChoose={(bootProgramSet) => choose.mutate({ siteId: site.id, bootProgramSet })}
        />
        <SelectField
          label="Packet capture"
          value={site.capture}
          options={captures}
          disabled={!mayChange}
          onChange={(value) =>
            capture.mutate({
              siteId: site.id,
              capture: captures.find((one) => one.value === value)?.value ?? 'failed',
            })
          }
        />
      </div>
    </Panel>
  )
}
