import type { ReactNode } from 'react'

interface PageHeaderProps {
  title: string
  /** Tags beside the title. */
  tags?: ReactNode
  summary?: ReactNode
  actions?: ReactNode
}

export function PageHeader({ title, tags, summary, actions }: PageHeaderProps) {
  return (
    <header className="flex flex-wrap items-end justify-between gap-x-6 gap-y-3">
      <div className="min-w-0">
        <div className="flex flex-wrap items-center gap-x-3 gap-y-1.5">
          <h1 className="truncate font-semibold text-ink text-xl tracking-tight">{title}</h1>
          {tags}
        </div>
        {summary && <div className="mt-1 text-ink-soft text-sm">{summary}</div>}
      </div>
      {actions && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
    </header>
  )
}

/** Vertical rhythm of every page. */
export function Page({ children }: { children: ReactNode }) {
  return <div className="mx-auto flex w-full max-w-[1240px] flex-col gap-5">{children}</div>
}
