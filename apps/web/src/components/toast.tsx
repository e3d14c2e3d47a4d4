'use client'

import { Toast } from 'radix-ui'
import { createContext, type ReactNode, useCallback, useContext, useRef, useState } from 'react'
import { readableError } from '../lib/trpc'
import { Icon } from './icon'
import { Dot, type Tone } from './tag'

interface ToastContent {
  title: string
  text?: ReactNode
  tone?: Tone
}

const shownMs = 8000
const toastsMax = 3

const ToastContext = createContext<(content: ToastContent) => void>(() => {})

/** Says what happened, in a corner, for a moment; announced to screen readers. */
export function useToast(): (content: ToastContent) => void {
  return useContext(ToastContext)
}

/** For `onError`: shows what failed, and why. */
export function useFailureToast(title: string): (error: unknown) => void {
  const show = useToast()
  return (error) => show({ title, text: readableError(error), tone: 'failed' })
}

export function ToastProvider({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<(ToastContent & { key: number })[]>([])
  const nextKey = useRef(0)
  const show = useCallback((content: ToastContent) => {
    nextKey.current += 1
    const key = nextKey.current
    setToasts((current) => [...current, { ...content, key }].slice(-toastsMax))
  }, [])
  const dismiss = (key: number) => setToasts((current) => current.filter((toast) => toast.key !== key))
  return (
    <ToastContext value={show}>
      <Toast.Provider duration={shownMs} label="Notification">
        {children}
        {toasts.map(({ key, title, text, tone = 'plain' }) => (
          <Toast.Root
            key={key}
            onOpenChange={(open) => !open && dismiss(key)}
            className="flex animate-[appear_160ms_ease-out] items-start gap-3 rounded-lg border border-line-strong bg-raised p-3 shadow-black/15 shadow-lg"
          >
            <span className="pt-1">
              <Dot tone={tone} />
            </span>
            <div className="min-w-0 flex-1">
              <Toast.Title className="font-medium text-ink text-sm">{title}</Toast.Title>
              {text && <Toast.Description className="mt-0.5 text-ink-soft text-xs">{text}</Toast.Description>}
            </div>
            <Toast.Close aria-label="Dismiss" className="rounded p-0.5 text-ink-faint hover:text-ink">
              <Icon name="close" size={14} />
            </Toast.Close>
          </Toast.Root>
        ))}
        <Toast.Viewport className="fixed right-4 bottom-4 z-50 flex w-[min(360px,calc(100vw-2rem))] flex-col gap-2 outline-none" />
      </Toast.Provider>
    </ToastContext>
  )
}
