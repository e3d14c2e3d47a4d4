'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { type ReactNode, useState } from 'react'
import { Button } from '../../components/button'
import { CopyLine } from '../../components/copy-line'
import { FormDialog, InfoDialog } from '../../components/dialog'
import { Notice } from '../../components/field'
import { Instant } from '../../components/instant'
import { ObjectPicker } from '../../components/object-picker'
import { Dot } from '../../components/tag'
import { formProblem, type RouterOutputs, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { HelpLink } from '../help/help-link'
import { helpTopics } from '../help/help-links'
import { useMay } from '../session/use-may'
import { addressWarning, installLine } from './install-line'

interface Site {
  id: string
  name: string
}

interface AddEdgeProps {
  /** Absent where it is to be chosen. */
  site?: Site
  look?: 'primary' | 'quiet'
}

/** Opens the way from a server of a site to an edge that is online. */
export function AddEdge({ site, look = 'primary' }: AddEdgeProps) {
  const [open, setOpen] = useState(false)
  const may = useMay('edge.change', site && { siteId: site.id })
  if (!may) return null
  return (
    <>
      <Button look={look} onClick={() => setOpen(true)}>
        Add edge
      </Button>
      {open && <AddEdgeDialog {...(site ? { site } : {})} onClose={() => setOpen(false)} />}
    </>
  )
}

/** Asks for the site if it is not known, creates a token, and shows the command that uses it. */
function AddEdgeDialog({ site, onClose }: { site?: Site; onClose: () => void }) {
  const trpc = useTRPC()
  const sites = usePicker('site', {}, { enabled: site === undefined })
  const installation = useQuery(trpc.edge.installation.queryOptions())
  const [chosenId, setChosenId] = useState('')
  const make = useMutation(trpc.edge.createJoinToken.mutationOptions())
  const chosen = site ?? sites.itemOf(chosenId) ?? sites.items[0]
  if (make.data && chosen && installation.data)
    return <JoinDialog site={chosen} url={installation.data.url} token={make.data} onClose={onClose} />
  const missing = installation.data?.releases.filter(({ problem }) => problem !== null) ?? []
  const isNone = installation.data !== undefined && missing.length === installation.data.releases.length
  const warning = installation.data && addressWarning(installation.data.url)
  return (
    <FormDialog
      title={site ? `Add edge to ${site.name}` : 'Add edge'}
      action="Generate install command"
      busy={make.isPending}
      disabled={!chosen || !installation.data || isNone}
      failure={formProblem(make.error ?? installation.error ?? sites.error)}
      onClose={onClose}
      onSubmit={() => chosen && make.mutate({ siteId: chosen.id })}
    >
      <p className="text-ink-soft text-sm">
        An edge is a server at a site that serves booting devices. You run one command on it as root. The command
        contains a token for one edge of this site that is valid for one hour.{' '}
        <HelpLink to={helpTopics.addEdge} inNewTab>
          What the server needs
        </HelpLink>
      </p>
      {!site && (
        <ObjectPicker label="Site" picker={sites} value={chosen?.id ?? ''} onChange={setChosenId} disabled={!chosen} />
      )}
      {sites.isLoaded && !chosen && (
        <Notice tone="silent">There is no site yet. Create one first: an edge belongs to a site.</Notice>
      )}
      {warning && <Notice tone="silent">{warning}</Notice>}
      {missing.map(({ arch, problem }) => (
        <Notice key={arch} tone={isNone ? 'silent' : 'live'}>
          {arch}: {problem}
        </Notice>
      ))}
    </FormDialog>
  )
}

type NewToken = RouterOutputs['edge']['createJoinToken']
type TokenState = RouterOutputs['edge']['joinToken']

/** Somebody looks at it and waits. */
const watchIntervalMs = 2_000

interface JoinDialogProps {
  site: { id: string; name: string }
  url: string
  token: NewToken
  onClose: () => void
}

/** The line to run, what it does, and whether the edge has come. */
function JoinDialog({ site, url, token, onClose }: JoinDialogProps) {
  const trpc = useTRPC()
  const { data } = useQuery(
    trpc.edge.joinToken.queryOptions({ siteId: site.id, joinTokenId: token.id }, { refetchInterval: watchIntervalMs }),
  )
  return (
    <InfoDialog title={`Add edge to ${site.name}`} closing="Close" onClose={onClose}>
      <p className="text-ink-soft text-sm">Run this command on the server as a user with sudo rights:</p>
      <CopyLine label="Install command" text={installLine(url, token.token)} />
      <p className="text-ink-soft text-xs">
        The token is for one edge of {site.name} and valid until <Instant at={token.expiresAt} />. It is shown only
        once.
      </p>
      <section className="flex flex-col gap-1.5 text-ink-soft text-xs">
        <h3 className="font-medium text-ink text-sm">What the command does</h3>
        <ol className="flex list-decimal flex-col gap-1 pl-5">
          <li>Downloads the edge from this control plane and verifies its signature before running it.</li>
          <li>
            Creates the user <code>bootfarm-edge</code> and a hardened systemd service that may only open low ports and
            listen to the network.
          </li>
          <li>Joins this site, checks itself, and reports what blocks the first boot.</li>
        </ol>
        <p>
          Your DHCP server stays unchanged: the edge only adds the boot answer. To uninstall, run the same script with
          the option <code>--uninstall</code>.
        </p>
      </section>
      <Watch state={data} siteName={site.name} />
      <HelpLink to={helpTopics.noMachineBoots} inNewTab>
        If the edge does not come, or no machine boots
      </HelpLink>
    </InfoDialog>
  )
}

function Watch({ state, siteName }: { state: TokenState | undefined; siteName: string }) {
  const edge = state?.edge
  if (edge?.online)
    return (
      <Line tone="ready">
        <Link href={`/edges/${edge.id}`} className="rounded font-medium text-ink underline underline-offset-4">
          {edge.name}
        </Link>{' '}
        is online.
      </Line>
    )
  if (edge)
    return (
      <>
        <Line tone="live">{edge.name} has joined. Waiting for its first heartbeat…</Line>
        <Checks>
          <li>
            On the server, run <code>systemctl status bootfarm-edge</code> and <code>journalctl -u bootfarm-edge</code>.
            The log states what is missing.
          </li>
          <li>Without systemd, start the edge with /etc/bootfarm-edge/run.</li>
        </Checks>
      </>
    )
  if (state?.expired)
    return (
      <Line tone="failed">The token expired before it was used. Close this dialog and generate a new command.</Line>
    )
  return (
    <>
      <Line tone="live">Waiting for an edge to join {siteName}…</Line>
      <Checks>
        <li>If the command fails, its last line explains why, and nothing stays half installed.</li>
        <li>The server must reach this address. It only makes outgoing connections.</li>
        <li>The server needs Linux on x86-64 or arm64, root, curl or wget, and OpenSSL 3.</li>
      </Checks>
    </>
  )
}

function Line({ tone, children }: { tone: 'ready' | 'live' | 'failed'; children: ReactNode }) {
  return (
    <p role="status" className="flex items-center gap-2 text-ink text-sm">
      <Dot tone={tone} />
      <span>{children}</span>
    </p>
  )
}

function Checks({ children }: { children: ReactNode }) {
  return (
    <details className="text-ink-soft text-xs">
      <summary className="cursor-pointer rounded">Troubleshooting</summary>
      <ul className="mt-1.5 flex list-disc flex-col gap-1 pl-5">{children}</ul>
    </details>
  )
}
