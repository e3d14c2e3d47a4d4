import { bootPhaseText } from '@bootfarm/proto/boot-phases'
import type { ReactNode } from 'react'
import { LogoMark } from '../shell/logo'

/** Widths in percent: a boot from its first packet to ready. */
const bars = [
  { phase: 'firmware', left: 0, width: 17 },
  { phase: 'dhcp', left: 17, width: 9 },
  { phase: 'nbp', left: 26, width: 6 },
  { phase: 'loader', left: 32, width: 19 },
  { phase: 'breather', left: 51, width: 13 },
  { phase: 'stage2', left: 64, width: 33 },
  { phase: 'ready', left: 97, width: 3 },
] as const

interface SignInSceneProps {
  title: string
  text: string
  children: ReactNode
}

/** The page for people who are not signed in. */
export function SignInScene({ title, text, children }: SignInSceneProps) {
  return (
    <div className="grid min-h-dvh lg:grid-cols-[minmax(420px,2fr)_3fr]">
      <main className="flex flex-col justify-center px-6 py-12 sm:px-12">
        <div className="mx-auto w-full max-w-sm">
          <LogoMark size={36} />
          <h1 className="mt-5 font-semibold text-2xl text-ink tracking-tight">{title}</h1>
          <p className="mt-1.5 mb-7 text-base text-ink-soft">{text}</p>
          {children}
        </div>
      </main>
      <div
        aria-hidden="true"
        className="relative hidden overflow-hidden border-line border-l bg-sunken lg:flex lg:flex-col lg:justify-center"
      >
        <div className="flex flex-col gap-5 px-[8%]">
          {bars.map(({ phase, left, width }) => (
            <div key={phase} className="relative h-8 border-line border-b">
              <span
                className="absolute top-0 text-ink-faint text-xs"
                style={
                  left > 60 ? { right: `${100 - left + 1.5}%`, top: 8 } : { left: `${left + width + 1.5}%`, top: 8 }
                }
              >
                {bootPhaseText(phase).title}
              </span>
              <span
                className="absolute bottom-2 h-3.5 rounded"
                style={{ left: `${left}%`, width: `${width}%`, background: `var(--phase-${phase})` }}
              />
            </div>
          ))}
        </div>
        <div className="dawn-gradient absolute inset-x-0 bottom-0 h-px opacity-80" />
      </div>
    </div>
  )
}
