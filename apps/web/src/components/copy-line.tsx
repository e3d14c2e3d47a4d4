'use client'

import { useRef, useState } from 'react'
import { Button } from './button'

interface CopyLineProps {
  /** Names it for screen readers. */
  label: string
  text: string
}

/** One line to copy with one click; if the browser does not allow copying, it is selected. */
export function CopyLine({ label, text }: CopyLineProps) {
  const shown = useRef<HTMLElement>(null)
  const [said, setSaid] = useState<string | null>(null)
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setSaid('Copied')
    } catch {
      // Pages that came without TLS have no clipboard.
      if (shown.current) window.getSelection()?.selectAllChildren(shown.current)
      setSaid('Selected. Press Ctrl+C to copy.')
    }
  }
  return (
    <figure aria-label={label} className="flex min-w-0 flex-col gap-2 rounded-md border border-line bg-canvas p-3">
      <pre className="min-w-0 whitespace-pre-wrap break-all font-mono text-ink text-xs leading-5">
        <code ref={shown}>{text}</code>
      </pre>
      <div className="flex items-center justify-end gap-3">
        <span role="status" className="text-ink-soft text-xs">
          {said}
        </span>
        <Button onClick={copy}>Copy</Button>
      </div>
    </figure>
  )
}
