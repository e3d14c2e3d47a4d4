'use client'

import { ToggleGroup } from 'radix-ui'
import { useState } from 'react'
import { applyTheme, type Theme, theme, themeFrom } from '../lib/theme'
import { Icon } from './icon'

const labels = { light: 'Light', dark: 'Dark', system: 'System' } as const
const icons = { light: 'sun', dark: 'moon', system: 'system' } as const

export function ThemeToggle({ initial }: { initial: Theme }) {
  const [current, setCurrent] = useState(initial)
  function choose(value: string) {
    // The group reports '' when the chosen one is pressed again: it stays chosen.
    if (value === '') return
    setCurrent(themeFrom(value))
    applyTheme(themeFrom(value))
  }
  return (
    <ToggleGroup.Root
      type="single"
      aria-label="Theme"
      value={current}
      onValueChange={choose}
      className="inline-flex rounded-md border border-line p-0.5"
    >
      {theme.options.map((option) => (
        <ToggleGroup.Item
          key={option}
          value={option}
          aria-label={labels[option]}
          title={labels[option]}
          className="grid size-6 place-items-center rounded text-ink-faint hover:text-ink data-[state=on]:bg-hover data-[state=on]:text-ink"
        >
          <Icon name={icons[option]} size={14} />
        </ToggleGroup.Item>
      ))}
    </ToggleGroup.Root>
  )
}
