'use client'

import { useSyncExternalStore } from 'react'
import { type SendProgress, UploadSender, type UploadTarget } from './upload-sender'

export interface TabUpload {
  uploadId: string
  name: string
  sizeBytes: number
  progress: SendProgress
}

interface Begin {
  upload: UploadTarget & { name: string; sizeBytes: number; receivedBytes: number }
  file: File
  /** Resolves when the page shows what follows the upload. */
  onComplete: () => Promise<unknown>
  onStop: (progress: SendProgress) => void
}

/**
 * The upload that this tab sends, at most one: they would share the line, and all of them would take longer. It
 * continues while its person looks at other pages of the dashboard.
 */
class TabUploads {
  #current: TabUpload | null = null
  #sender: UploadSender | null = null
  #finish: (isComplete: boolean, progress: SendProgress) => void = () => undefined
  readonly #listeners = new Set<() => void>()

  readonly subscribe = (listener: () => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  readonly current = () => this.#current

  /** Does nothing while another one is sent: `isBusy` is asked first. */
  begin({ upload, file, onComplete, onStop }: Begin): void {
    if (this.isBusy()) return
    const { id: uploadId, name, sizeBytes, receivedBytes: sentBytes } = upload
    const onProgress = (progress: SendProgress) => this.#set({ uploadId, name, sizeBytes, progress })
    const sender = new UploadSender({ upload, file, sentBytes, onProgress })
    this.#sender = sender
    this.#finish = (isComplete, progress) => {
      if (isComplete) {
        void onComplete().finally(() => sender === this.#sender && this.forget())
        return
      }
      // A file that cannot be read is chosen again.
      if (progress.reason === 'unreadable' || progress.reason === 'gone') this.forget()
      onStop(progress)
    }
    this.resume()
  }

  /** Continues the one that was stopped. */
  resume(): void {
    const sender = this.#sender
    if (!sender || this.isBusy()) return
    window.addEventListener('beforeunload', askBeforeLeaving)
    void sender.run().then((isComplete) => {
      if (!this.isBusy()) window.removeEventListener('beforeunload', askBeforeLeaving)
      // It was discarded, and another one may have begun.
      if (sender === this.#sender && this.#current) this.#finish(isComplete, this.#current.progress)
    })
  }

  pause(): void {
    this.#sender?.pause()
  }

  retryNow(): void {
    this.#sender?.retryNow()
  }

  /** Ends it, and lets go of its file. */
  forget(): void {
    const sender = this.#sender
    this.#sender = null
    sender?.pause()
    this.#set(null)
  }

  isBusy(): boolean {
    const phase = this.#current?.progress.phase
    return phase === 'sending' || phase === 'waiting'
  }

  #set(current: TabUpload | null): void {
    if (current && !this.#sender) return
    this.#current = current
    for (const listener of this.#listeners) listener()
  }
}

function askBeforeLeaving(event: BeforeUnloadEvent): void {
  event.preventDefault()
}

export const tabUploads = new TabUploads()

/** Null: this tab sends nothing. */
export function useTabUpload(): TabUpload | null {
  return useSyncExternalStore(tabUploads.subscribe, tabUploads.current, () => null)
}
