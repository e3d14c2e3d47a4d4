'use client'

import { useMutation } from '@tanstack/react-query'
import Link from 'next/link'
import { useState } from 'react'
import { Banner } from '../../components/banner'
import { Button } from '../../components/button'
import { FormDialog } from '../../components/dialog'
import { Instant } from '../../components/instant'
import { Panel } from '../../components/page'
import { Mono, Tag, type Tone } from '../../components/tag'
import { formProblem, type RouterInputs, type RouterOutputs, useTRPC } from '../../lib/trpc'
import { useSaved } from '../objects/object-dialog'
import { useMay } from '../session/use-may'
import { fingerprintText, isKeyAlarm, type KeyLabel, keyLabels, keySentence } from './key-text'

type DeviceDetail = RouterOutputs['device']['get']
type Decision = RouterInputs['device']['decideKey']['decision']

const link = 'rounded underline decoration-line-strong underline-offset-4 hover:decoration-ink'

function toneOf(label: KeyLabel): Tone | undefined {
  if (isKeyAlarm(label)) return 'failed'
  return label === 'key_waits' ? 'silent' : label === 'key_known' ? 'ready' : undefined
}

/** @param quiet for a row of a list: a known key is the usual case, and is not shown */
export function KeyTag({ label, quiet = false }: { label: KeyLabel | null; quiet?: boolean }) {
  if (label === null || (quiet && label === 'key_known')) return null
  const tone = toneOf(label)
  return <Tag {...(tone ? { tone } : {})}>{keyLabels[label]}</Tag>
}

/** Above a device's page, as long as a person has to decide. */
export function KeyNotice({ device }: { device: DeviceDetail }) {
  const { keyLabel, key } = device
  if (!isKeyAlarm(keyLabel) && keyLabel !== 'key_waits') return null
  return (
    <Banner
      label="Key of this device"
      tone={isKeyAlarm(keyLabel) ? 'failed' : 'silent'}
      action={<DecideKey device={device} />}
    >
      <p className="font-medium">{keySentence(keyLabel, key)}</p>
      {key.claim && (
        <p className="mt-0.5 text-ink-soft text-xs">
          First reported <Instant at={key.claim.since} />.{' '}
          {key.claim.bootId && (
            <Link prefetch={false} href={`/boots/${key.claim.bootId}`} className={link}>
              Show the boot
            </Link>
          )}
        </p>
      )}
    </Banner>
  )
}

/** How the device is known, and what a person may decide about it. */
export function DeviceKeyPanel({ device }: { device: DeviceDetail }) {
  const { keyLabel, key } = device
  const isOpen = isKeyAlarm(keyLabel) || keyLabel === 'key_waits'
  return (
    <Panel title="Device key" aside={<KeyTag label={keyLabel} />}>
      <div className="flex flex-col gap-2 text-ink-soft text-sm">
        {!isOpen && <p>{keySentence(keyLabel, key)}</p>}
        {key.known && <Fingerprint label="Known key" fingerprint={key.known} />}
        {key.decidedAt && (
          <p className="text-xs">
            {key.decidedBy ? `Decided by ${key.decidedBy}` : 'Accepted at the first boot'},{' '}
            <Instant at={key.decidedAt} />.
          </p>
        )}
        {key.claim?.key && <Fingerprint label="Proved key" fingerprint={key.claim.key} />}
        {!isOpen && <DecideKey device={device} />}
      </div>
    </Panel>
  )
}

function Fingerprint({ label, fingerprint }: { label: string; fingerprint: string }) {
  return (
    <p>
      <span className="block text-ink-faint text-xs">{label} (SHA-256)</span>
      <Mono>
        <span className="break-words">{fingerprintText(fingerprint)}</span>
      </Mono>
    </p>
  )
}

function DecideKey({ device }: { device: DeviceDetail }) {
  const [isOpen, setOpen] = useState(false)
  const mayChange = useMay('device.change', {
    farmId: device.farmId,
    siteId: device.siteId,
    collectionId: device.collectionId,
  })
  if (!mayChange || choicesOf(device).length === 0) return null
  return (
    <div>
      <Button onClick={() => setOpen(true)}>Decide on key</Button>
      {isOpen && <DecideKeyDialog device={device} onClose={() => setOpen(false)} />}
    </div>
  )
}

interface Choice {
  decision: Decision
  label: string
  effect: string
}

/** What can be decided of a device as it is. */
function choicesOf({ keyLabel, key }: DeviceDetail): Choice[] {
  const choices: (Choice & { isThere: boolean })[] = [
    {
      isThere: key.claim?.key != null,
      decision: 'approve',
      label: key.known ? 'Approve the new key' : 'Approve the key',
      effect: key.known
        ? 'From its next boot on only the machine with the new key opens what is private. The machine with the known key is then the alarm.'
        : 'From its next boot on only the machine with this key opens what is private.',
    },
    {
      isThere: isKeyAlarm(keyLabel),
      decision: 'keep',
      label: key.known ? 'Keep the known key' : 'Dismiss the alarm',
      effect:
        'Nothing changes for the device, and the alarm ends. If the same thing happens again, it is an alarm again.',
    },
    {
      isThere: key.known !== null || key.keyless,
      decision: 'forget',
      label: key.keyless ? 'Expect a key again' : 'Forget the known key',
      effect:
        key.policy.learn === 'accept_first'
          ? 'The next machine that boots with this MAC address and a TPM is accepted as this device.'
          : 'The key of its next boot waits for approval.',
    },
    {
      isThere: !key.keyless,
      decision: 'keyless',
      label: 'This device has no key',
      effect:
        'The device is known by its MAC address only, and boots even where its collection refuses devices without a key. A key that it proves later is an alarm.',
    },
  ]
  return choices.filter(({ isThere }) => isThere)
}

function DecideKeyDialog({ device, onClose }: { device: DeviceDetail; onClose: () => void }) {
  // What was seen when the dialog opened: a claim that arrives meanwhile is not decided unseen.
  const [seen] = useState(device)
  const choices = choicesOf(seen)
  const [chosen, setChosen] = useState<Decision | null>(null)
  const saved = useSaved(onClose)
  const decide = useMutation(useTRPC().device.decideKey.mutationOptions({ onSuccess: saved }))
  const { known, claim, revision } = seen.key
  return (
    <FormDialog
      title={`Key of ${seen.name}`}
      action="Save decision"
      wide
      busy={decide.isPending}
      disabled={chosen === null}
      failure={formProblem(decide.error)}
      onSubmit={() =>
        chosen &&
        decide.mutate({
          deviceId: seen.id,
          decision: chosen,
          keyRevision: revision,
          claimedKey: chosen === 'approve' ? (claim?.key ?? null) : null,
        })
      }
      onClose={onClose}
    >
      <p className="text-ink-soft text-sm">{keySentence(seen.keyLabel, seen.key)}</p>
      <div className="flex flex-col gap-2 text-ink-soft text-sm">
        {known && <Fingerprint label="Known key" fingerprint={known} />}
        {claim?.key && <Fingerprint label="Proved key" fingerprint={claim.key} />}
        {claim?.key && (
          <p className="text-xs">
            To compare it, run <Mono>bootfarm-target identity</Mono> on the machine itself. Accept no fingerprint that
            came over the same network.
          </p>
        )}
      </div>
      <fieldset className="flex flex-col gap-2.5">
        <legend className="mb-2 font-medium text-ink-soft text-xs">Decision</legend>
        {choices.map(({ decision, label, effect }) => (
          <label key={decision} className="flex gap-2.5 text-sm">
            <input
              type="radio"
              name="decision"
              className="mt-1 self-start"
              checked={chosen === decision}
              onChange={() => setChosen(decision)}
            />
            <span className="min-w-0">
              <span className="font-medium text-ink">{label}</span>
              <span className="block text-ink-soft">{effect}</span>
            </span>
          </label>
        ))}
      </fieldset>
    </FormDialog>
  )
}
