'use client'

import { useMutation } from '@tanstack/react-query'
import { useEffect } from 'react'
import { useToast } from '../../components/toast'
import { readableError, useTRPC } from '../../lib/trpc'
import { placeOf } from '../shell/places'

/** Tabs of this browser share one session, and with it the organization. */
const channelName = 'bootfarm-organization'

/**
 * The part of the address that is valid in another organization: its list of the same kind, not an object of the
 * previous one.
 */
export function pathElsewhere(pathname: string): string {
  return placeOf(pathname)?.href ?? '/'
}

/** The session works in another organization from then on; every open tab shows that one. */
export function useChooseOrganization() {
  const toast = useToast()
  return useMutation(
    useTRPC().session.chooseOrganization.mutationOptions({
      onSuccess: () => {
        const channel = new BroadcastChannel(channelName)
        channel.postMessage('chosen')
        channel.close()
        goOn()
      },
      onError: (error) => toast({ title: 'Could not switch organization', text: readableError(error), tone: 'failed' }),
    }),
  )
}

/** Follows a choice that was made in another tab. */
export function useChosenElsewhere(): void {
  useEffect(() => {
    const channel = new BroadcastChannel(channelName)
    channel.onmessage = goOn
    return () => channel.close()
  }, [])
}

/** A full load: nothing of the organization before is kept. */
function goOn(): void {
  window.location.assign(pathElsewhere(window.location.pathname))
}
