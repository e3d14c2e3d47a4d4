'use client'

import { useQuery } from '@tanstack/react-query'
import { DropdownMenu } from 'radix-ui'
import { useState } from 'react'
import { Icon } from '../../components/icon'
import { PageLink } from '../../components/page-link'
import { useToast } from '../../components/toast'
import { useTRPC } from '../../lib/trpc'
import { forgetRecentPages } from '../search/recent-pages'
import { askAuth } from './ask-auth'
import type { SessionView } from './read-session'
import { useChooseOrganization, useChosenElsewhere } from './use-choose-organization'

const itemClass =
  'flex h-8 cursor-pointer items-center gap-2.5 rounded-md px-2.5 text-ink text-sm outline-none data-[highlighted]:bg-hover max-md:h-10'

/** Organization and user, with the other organizations, the account and sign-out. */
export function SignedInAs({ session }: { session: SessionView }) {
  const showToast = useToast()
  const [isOpen, setOpen] = useState(false)
  async function signOut() {
    const { error } = await askAuth('sign-out')
    if (error)
      showToast({ title: 'Could not sign you out.', text: 'The control plane does not respond.', tone: 'failed' })
    else {
      forgetRecentPages()
      window.location.assign('/sign-in')
    }
  }
  return (
    <DropdownMenu.Root open={isOpen} onOpenChange={setOpen}>
      <ChosenElsewhere />
      <DropdownMenu.Trigger
        // Not on the press: the menu grows while its organizations are loaded, and what comes under the pointer
        // meanwhile would be chosen by its release.
        onPointerDown={(event) => event.preventDefault()}
        onClick={() => setOpen(!isOpen)}
        className="flex w-full items-center gap-2.5 rounded-md px-2 py-1.5 text-left hover:bg-hover data-[state=open]:bg-hover"
      >
        <Initials name={session.organization.name} />
        <span className="min-w-0 flex-1">
          <span className="block truncate font-medium text-ink text-sm">{session.organization.name}</span>
          <span className="block truncate text-ink-faint text-xs">{session.user.name}</span>
        </span>
        <span className="text-ink-faint">
          <Icon name="updown" />
        </span>
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          align="start"
          sideOffset={6}
          className="z-50 w-60 animate-[appear_120ms_ease-out] rounded-lg border border-line bg-raised p-1 shadow-black/10 shadow-lg"
        >
          <DropdownMenu.Label className="px-2.5 py-2">
            <span className="block truncate font-medium text-ink text-sm">{session.user.name}</span>
            <span className="block truncate text-ink-soft text-xs">{session.user.email}</span>
            <span className="mt-1 block text-ink-faint text-xs">
              {rolesOf(session)} of {session.organization.name}
            </span>
          </DropdownMenu.Label>
          <DropdownMenu.Separator className="my-1 h-px bg-line" />
          <OrganizationItems currentId={session.organization.id} />
          <DropdownMenu.Item asChild className={itemClass}>
            <PageLink href="/account">
              <Icon name="account" /> Your account
            </PageLink>
          </DropdownMenu.Item>
          <DropdownMenu.Item onSelect={() => void signOut()} className={itemClass}>
            <Icon name="signOut" /> Sign out
          </DropdownMenu.Item>
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  )
}

/** Roles that hold in a part of the organization alone are marked as such. */
function rolesOf({ grants }: SessionView): string {
  const names = grants.map(({ role, farmId }) => role.replace('_', ' ') + (farmId ? ' in part of it' : ''))
  return [...new Set(names)].join(', ') || 'no role'
}

function Initials({ name }: { name: string }) {
  return (
    <span
      aria-hidden="true"
      className="grid size-7 shrink-0 place-items-center rounded-md border border-line-strong bg-sunken font-mono font-medium text-2xs text-ink-soft"
    >
      {name.slice(0, 2).toUpperCase()}
    </span>
  )
}

/** In the menu of the signed-in person: their other organizations. Nothing if there are none. */
function OrganizationItems({ currentId }: { currentId: string }) {
  const { data = [] } = useQuery(useTRPC().session.organizations.queryOptions())
  const choose = useChooseOrganization()
  if (data.length < 2) return null
  return (
    <>
      <DropdownMenu.RadioGroup
        aria-label="Organization"
        value={currentId}
        onValueChange={(organizationId) => organizationId !== currentId && choose.mutate({ organizationId })}
        className="max-h-64 overflow-y-auto"
      >
        {data.map(({ id, name }) => (
          <DropdownMenu.RadioItem
            key={id}
            value={id}
            className="flex min-h-8 cursor-pointer items-center gap-2.5 rounded-md px-2.5 py-1 text-ink text-sm outline-none data-[highlighted]:bg-hover max-md:min-h-10"
          >
            <span className="min-w-0 flex-1 truncate">{name}</span>
            <DropdownMenu.ItemIndicator>
              <Icon name="check" size={14} />
            </DropdownMenu.ItemIndicator>
          </DropdownMenu.RadioItem>
        ))}
      </DropdownMenu.RadioGroup>
      <DropdownMenu.Separator className="my-1 h-px bg-line" />
    </>
  )
}

/** Renders nothing: leads this tab to the organization that was chosen in another one. */
function ChosenElsewhere() {
  useChosenElsewhere()
  return null
}
