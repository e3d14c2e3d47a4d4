'use client'

import { useQuery } from '@tanstack/react-query'
import { DropdownMenu } from 'radix-ui'
import { Icon } from '../../components/icon'
import { useTRPC } from '../../lib/trpc'
import { useChooseOrganization, useChosenElsewhere } from './use-choose-organization'

/** In the menu of who is signed in: the other organizations that the person belongs to. Nothing for those of one. */
export function OrganizationItems({ currentId }: { currentId: string }) {
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
export function ChosenElsewhere() {
  useChosenElsewhere()
  return null
}
