'use client'

import { useQueryClient } from '@tanstack/react-query'
import { useToast } from '../../components/toast'
import { type Listed, readableError, useTRPCClient } from '../../lib/trpc'
import type { FollowingImport } from './following-import'
import { browserStorage, forgetUpload, rememberUpload } from './remembered-uploads'
import { tabUploads } from './tab-uploads'
import { stopText } from './upload-text'

export type Upload = Listed<'upload'>

/**
 * Returns the function that sends a file to an upload from this tab, and then begins its import.
 * @returns false while the tab sends another one
 */
export function useSendUpload(): (upload: Upload, file: File, following: FollowingImport | null) => boolean {
  const client = useTRPCClient()
  const queryClient = useQueryClient()
  const showToast = useToast()
  return (upload, file, following) => {
    if (tabUploads.isBusy()) return false
    const { id, vdiskId, name } = upload
    const remember = (stopped: string | null) => {
      const { lastModified } = file
      if (following) rememberUpload(browserStorage(), id, { lastModified, import: following, stopped }, Date.now())
    }
    const importIt = async () => {
      if (!following) return showToast({ title: `${name} has arrived.`, text: 'Import it now.', tone: 'ready' })
      try {
        await client.version.import.mutate({ ...following, vdiskId, uploadId: id })
        forgetUpload(browserStorage(), id)
        showToast({ title: `${name} has arrived, and is being imported.`, tone: 'ready' })
      } catch (error) {
        showToast({ title: `Could not import ${name}.`, text: readableError(error), tone: 'failed' })
      }
    }
    remember(null)
    tabUploads.begin({
      upload,
      file,
      onComplete: () => importIt().finally(() => queryClient.invalidateQueries()),
      onStop: (progress) => {
        const text = stopText(progress)
        remember(text)
        if (progress.reason !== 'paused') showToast({ title: `${name} is not being sent.`, text, tone: 'failed' })
        void queryClient.invalidateQueries()
      },
    })
    return true
  }
}
