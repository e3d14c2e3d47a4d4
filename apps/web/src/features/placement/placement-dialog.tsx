'use client'

import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { Notice, SelectField } from '../../components/field'
import { ObjectPicker } from '../../components/object-picker'
import { useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { ObjectDialog, useSaved } from '../objects/object-dialog'
import { type Placement, type RuleForm, readRule, ruleFormOf } from './copy-text'
import { RuleFields } from './rule-fields'

interface SiteForm {
  siteId: string
  siteName: string
  form: RuleForm
  /** Added in this dialog: the keyboard continues there. */
  isNew?: boolean
}

interface PlacementDialogProps {
  vdisk: { id: string; name: string; farmId: string }
  placement: Placement
  onClose: () => void
}

const vdiskChoices = [
  { value: 'inherited', label: 'The placement of the farm' },
  { value: 'own', label: 'Its own placement' },
]

/** Chooses which edges hold the versions of a vDisk. */
export function PlacementDialog({ vdisk, placement, onClose }: PlacementDialogProps) {
  const trpc = useTRPC()
  const set = useMutation(trpc.placement.set.mutationOptions({ onSuccess: useSaved(onClose) }))
  return (
    <RulesDialog
      title={`Placement of ${vdisk.name}`}
      farmId={vdisk.farmId}
      placement={placement}
      choices={vdiskChoices}
      saving={set}
      onSave={(saved) => set.mutate(Object.assign({ vdiskId: vdisk.id }, saved))}
      onClose={onClose}
    />
  )
}

interface FarmPlacementDialogProps {
  farm: { id: string; name: string }
  placement: Placement
  onClose: () => void
}

const farmChoices = [
  { value: 'inherited', label: 'Every edge of every site' },
  { value: 'own', label: 'Edges chosen below' },
]

/** Chooses which edges hold the versions of a farm's vDisks that have no placement. */
export function FarmPlacementDialog({ farm, placement, onClose }: FarmPlacementDialogProps) {
  const trpc = useTRPC()
  const set = useMutation(trpc.placement.setOfFarm.mutationOptions({ onSuccess: useSaved(onClose) }))
  return (
    <RulesDialog
      title={`Placement of vDisks in ${farm.name}`}
      farmId={farm.id}
      placement={placement}
      choices={farmChoices}
      saving={set}
      onSave={(saved) => set.mutate(Object.assign({ farmId: farm.id }, saved))}
      onClose={onClose}
    />
  )
}

interface RulesDialogProps {
  title: string
  /** Its sites can have rules. */
  farmId: string
  placement: Placement
  choices: { value: string; label: string }[]
  saving: { isPending: boolean; error: unknown }
  onSave: (saved: { revision: number; rules: SavedRules | null }) => void
  onClose: () => void
}

function RulesDialog({ title, farmId, placement, choices, saving, onSave, onClose }: RulesDialogProps) {
  const [seen] = useState(placement)
  const [choice, setChoice] = useState(seen.isInherited ? 'inherited' : 'own')
  const [others, setOthers] = useState(ruleFormOf(seen.others))
  const [sites, setSites] = useState<SiteForm[]>(
    seen.sites.map(({ siteId, siteName, ...rule }) => ({ siteId, siteName, form: ruleFormOf(rule) })),
  )
  const read = choice === 'inherited' ? { rules: null } : readForms(others, sites)
  return (
    <ObjectDialog
      title={title}
      action="Save"
      wide
      saving={saving}
      disabled={'problem' in read}
      onSave={(revision = seen.revision) => 'rules' in read && onSave({ revision, rules: read.rules })}
      onClose={onClose}
    >
      <SelectField label="Versions are held by" value={choice} options={choices} onChange={setChoice} />
      {choice === 'own' && (
        <>
          <RuleFields
            title={sites.length === 0 ? 'Every site' : 'Every other site'}
            form={others}
            onChange={setOthers}
          />
          {sites.map(({ siteId, siteName, form, isNew = false }) => (
            <RuleFields
              key={siteId}
              title={siteName}
              form={form}
              takesFocus={isNew}
              onChange={(changed) =>
                setSites(sites.map((site) => (site.siteId === siteId ? { siteId, siteName, form: changed } : site)))
              }
              onRemove={() => setSites(sites.filter((site) => site.siteId !== siteId))}
            />
          ))}
          <AddSite
            farmId={farmId}
            known={sites}
            onAdd={(site) => setSites([...sites, { siteId: site.id, siteName: site.name, form: others, isNew: true }])}
          />
        </>
      )}
      {'problem' in read && (
        <p role="status" className="text-failed text-sm">
          {read.problem}
        </p>
      )}
      <Notice tone="live">
        Edges fetch what they lack in the background. Versions that they hold already stay. Saving also tries failed and
        cancelled transfers again.
      </Notice>
    </ObjectDialog>
  )
}

type SavedRules = Extract<ReturnType<typeof readForms>, { rules: object }>['rules']

function readForms(others: RuleForm, sites: SiteForm[]) {
  const read = readRule(others)
  if ('problem' in read) return read
  const rules = []
  for (const { siteId, siteName, form } of sites) {
    const ofSite = readRule(form)
    if ('problem' in ofSite) return { problem: `${siteName}: ${ofSite.problem}` }
    rules.push(Object.assign({ siteId }, ofSite.rule))
  }
  return { rules: { others: read.rule, sites: rules } }
}

interface AddSiteProps {
  farmId: string
  known: SiteForm[]
  onAdd: (site: { id: string; name: string }) => void
}

function AddSite({ farmId, known, onAdd }: AddSiteProps) {
  const sites = usePicker('site', { farmId })
  const [siteId, setSiteId] = useState('')
  const site = sites.itemOf(siteId)
  const isNew = site !== undefined && known.every((one) => one.siteId !== siteId)
  return (
    <div className="grid grid-cols-[1fr_auto] items-end gap-2">
      <ObjectPicker
        label="Site with another rule"
        picker={sites}
        value={siteId}
        first={[{ value: '', label: 'Select a site' }]}
        onChange={setSiteId}
      />
      <Button
        disabled={!isNew}
        onClick={() => {
          if (site) onAdd(site)
          setSiteId('')
        }}
      >
        Add rule
      </Button>
    </div>
  )
}
