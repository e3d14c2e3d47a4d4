'use client'

import { useQuery } from '@tanstack/react-query'
import Link from 'next/link'
import type { ReactNode } from 'react'
import { CopyLine } from '../../components/copy-line'
import { InfoDialog } from '../../components/info-dialog'
import { Instant } from '../../components/instant'
import { Dot } from '../../components/tag'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { installLine } from './install-line'

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
export function JoinDialog({ site, url, token, onClose }: JoinDialogProps) {
  const trpc = useTRPC()
  const { data } = useQuery(
    trpc.edge.joinToken.queryOptions({ siteId: site.id, joinTokenId: token.id }, { refetchInterval: watchIntervalMs }),
  )
  return (
    <InfoDialog title={`Add an edge to ${site.name}`} closing="Close" onClose={onClose}>
      <p className="text-ink-soft text-sm">Run this line on the server, as a user who may use sudo:</p>
      <CopyLine label="Line to run" text={installLine(url, token.token)} />
      <p className="text-ink-soft text-xs">
        The token is for one edge of {site.name}, and valid until <Instant at={token.expiresAt} />. It is shown here
        once.
      </p>
      <section className="flex flex-col gap-1.5 text-ink-soft text-xs">
        <h3 className="font-medium text-ink text-sm">What it does there</h3>
        <ol className="flex list-decimal flex-col gap-1 pl-5">
          <li>Fetches the edge from this control plane and checks its signature before anything of it runs.</li>
          <li>
            Makes the user <code>bootfarm-edge</code> and a hardened systemd service that may open low ports and listen
            to the network, and nothing else.
          </li>
          <li>Joins this site, checks itself, and says what stands in the way of the first boot.</li>
        </ol>
        <p>
          The network’s DHCP server stays as it is: the edge only adds the boot answer. To take everything away again:
          the same script with <code>--uninstall</code>.
        </p>
      </section>
      <Watch state={data} siteName={site.name} />
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
        <Line tone="live">{edge.name} has joined; waiting for its first heartbeat…</Line>
        <Checks>
          <li>
            On the server: <code>systemctl status bootfarm-edge</code>, and <code>journalctl -u bootfarm-edge</code>; it
            says in one sentence what it lacks.
          </li>
          <li>Without systemd, start it: /etc/bootfarm-edge/run.</li>
        </Checks>
      </>
    )
  if (state?.expired) return <Line tone="failed">The token has expired unused. Close this, and make a new line.</Line>
  return (
    <>
      <Line tone="live">Waiting for an edge to join {siteName}…</Line>
      <Checks>
        <li>The line ends with a sentence that says what went wrong; nothing stays half installed.</li>
        <li>The server must reach this address: it dials out, nothing has to reach it from here.</li>
        <li>It needs Linux on x86-64 or arm64, root, curl or wget, and OpenSSL 3.</li>
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
      <summary className="cursor-pointer rounded">If it does not appear</summary>
      <ul className="mt-1.5 flex list-disc flex-col gap-1 pl-5">{children}</ul>
    </details>
  )
}
