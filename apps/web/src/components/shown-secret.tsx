'use client'

import { useState } from 'react'
import { Button } from './button'
import { Notice } from './field'
import { Icon } from './icon'

/** A secret that is shown this once, to be copied. */
export function ShownSecret({ label, secret, hint }: { label: string; secret: string; hint: string }) {
  const [isCopied, setCopied] = useState(false)
  const copy = () =>
    navigator.clipboard.writeText(secret).then(
      () => setCopied(true),
      () => setCopied(false),
    )
  return (
    <div className="flex flex-col gap-3">
      <Notice tone="live">{hint}</Notice>
      <div className="flex flex-wrap items-center gap-2">
        <input
          readOnly
          value={secret}
          aria-label={label}
          onFocus={(event) => event.target.select()}
          className="h-8 min-w-0 flex-1 rounded-md border border-line-strong bg-surface px-2 font-mono text-ink text-xs max-md:h-10"
        />
        <Button onClick={copy}>
          <Icon name={isCopied ? 'check' : 'download'} size={14} />
          {isCopied ? 'Copied' : 'Copy'}
        </Button>
      </div>
    </div>
  )
}
