'use client'

import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { Button } from '../../components/button'
import { InfoDialog } from '../../components/dialog'
import { Fold, SelectField, TextField } from '../../components/field'
import { ObjectPicker } from '../../components/object-picker'
import { Skeleton } from '../../components/page'
import { type RouterInputs, readableError, useTRPC } from '../../lib/trpc'
import { useDelayed } from '../../lib/use-delayed'
import { usePicker } from '../../lib/use-picker'
import { predictionBasis, predictionFacts, predictionHeadline } from './prediction-text'

interface Predicted {
  vdisk: { farmId: string }
  version: { id: string; number: number; sealedAt: string | null; atEdges: { siteName: string }[] }
}

type Input = RouterInputs['prediction']['run']
interface Choices {
  devices: string
  starts: string
  perSecond: string
  reads: 'warm' | 'cold'
  link: string
}
const firstChoices: Choices = { devices: '', starts: 'once', perSecond: '5', reads: 'warm', link: '' }

/** Opens the prediction of a version; nothing for one that no production device could boot yet. */
export function PredictStorm({ vdisk, version }: Predicted) {
  const [open, setOpen] = useState(false)
  if (version.sealedAt === null) return null
  return (
    <div>
      <Button small aria-label={`Predict boots: version ${version.number}`} onClick={() => setOpen(true)}>
        Predict boots
      </Button>
      {open && (
        <InfoDialog title={`Boots with version ${version.number}`} closing="Close" onClose={() => setOpen(false)}>
          <StormPrediction vdisk={vdisk} version={version} open />
        </InfoDialog>
      )}
    </div>
  )
}

/** How long a site's devices would take with a version, of what that is known, and a choice of another storm. */
export function StormPrediction({ vdisk, version, open = false }: Predicted & { open?: boolean }) {
  const [choices, setChoices] = useState(firstChoices)
  const [chosenId, setChosenId] = useState('')
  const sites = usePicker('site', { farmId: vdisk.farmId })
  const holding = sites.items.find(({ name }) => version.atEdges.some(({ siteName }) => siteName === name))
  const site = sites.itemOf(chosenId) ?? holding ?? sites.items[0]
  const fields = (
    <PredictionFields choices={choices} onChange={(change) => setChoices({ ...choices, ...change })}>
      <ObjectPicker label="Site" picker={sites} value={site?.id ?? ''} onChange={setChosenId} />
    </PredictionFields>
  )
  return (
    <section aria-label="Prediction" className="flex min-w-0 flex-col gap-3 text-sm">
      {site && <Answer siteId={site.id} versionId={version.id} choices={choices} />}
      {sites.isLoaded && !site && <p className="text-ink-soft">The farm has no site whose boots could be predicted.</p>}
      {site && (open ? fields : <Fold title="Predict other boots">{fields}</Fold>)}
    </section>
  )
}

function Answer({ siteId, versionId, choices }: { siteId: string; versionId: string; choices: Choices }) {
  const input = useDelayed(JSON.stringify(inputOf(choices)))
  const { data, error } = useQuery(
    useTRPC().prediction.run.queryOptions(
      { siteId, versionId, ...(JSON.parse(input) as Partial<Input>) },
      { staleTime: 60_000, retry: false, placeholderData: keepPreviousData },
    ),
  )
  if (error) return <p className="text-failed">{readableError(error)}</p>
  if (!data) return <Skeleton className="h-10 w-full" />
  return (
    <div aria-live="polite" className="flex flex-col gap-2">
      <p className={data.version.storm ? 'font-medium text-ink' : 'text-ink-soft'}>{predictionHeadline(data)}</p>
      {predictionFacts(data).map((text) => (
        <p key={text} className="text-ink-soft">
          {text}
        </p>
      ))}
      <Fold title="Why">
        <ul className="flex list-disc flex-col gap-1 pl-5 text-ink-soft">
          {predictionBasis(data).map((text) => (
            <li key={text}>{text}</li>
          ))}
        </ul>
      </Fold>
    </div>
  )
}

/** What is typed and no number is left to the API, which says what is wrong with it. */
function inputOf({ devices, starts, perSecond, reads, link }: Choices): Partial<Input> {
  return {
    reads,
    ...(devices.trim() === '' ? {} : { devices: Number(devices) }),
    ...(starts === 'once' ? {} : { startsPerSecond: Number(perSecond) }),
    ...(link.trim() === '' ? {} : { linkMbps: Number(link) }),
  }
}

interface PredictionFieldsProps {
  choices: Choices
  onChange: (change: Partial<Choices>) => void
  children: ReactNode
}

function PredictionFields({ choices, onChange, children }: PredictionFieldsProps) {
  const { devices, starts, perSecond, reads, link } = choices
  return (
    <div className="grid gap-3 sm:grid-cols-2">
      {children}
      <TextField
        label="Devices"
        type="number"
        value={devices}
        placeholder="all that boot the vDisk"
        onChange={(value) => onChange({ devices: value })}
      />
      <SelectField
        label="Start"
        value={starts}
        options={[
          { value: 'once', label: 'all at once' },
          { value: 'rate', label: 'one after the other' },
        ]}
        onChange={(value) => onChange({ starts: value })}
      />
      {starts === 'rate' && (
        <TextField
          label="Starts per second"
          type="number"
          value={perSecond}
          onChange={(value) => onChange({ perSecond: value })}
        />
      )}
      <SelectField
        label="Where the version is"
        value={reads}
        options={[
          { value: 'warm', label: 'in the edges’ memory' },
          { value: 'cold', label: 'on the edges’ disks only' },
        ]}
        onChange={(value) => onChange({ reads: value === 'cold' ? 'cold' : 'warm' })}
      />
      <TextField
        label="Link of each edge, Mbit/s"
        type="number"
        value={link}
        placeholder="as the edges report it"
        onChange={(value) => onChange({ link: value })}
      />
    </div>
  )
}
