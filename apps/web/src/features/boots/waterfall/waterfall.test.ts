import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import { Waterfall } from './waterfall'

const phases = [
  { name: 'dhcp', startUs: 0, durationUs: 21_000, gaps: [] },
  { name: 'breather', startUs: 21_000, durationUs: 979_000, gaps: [] },
  { name: 'stage2', startUs: 1_000_000, durationUs: null, gaps: [{ atUs: 1_500_000, durationUs: 300_000 }] },
] as const

const draw = (running: boolean, elapsedUs: number) =>
  renderToStaticMarkup(
    createElement(Waterfall, {
      phases: phases.map((phase) => ({ ...phase, gaps: [...phase.gaps] })),
      running,
      elapsedUs,
    }),
  ).replaceAll('\u00a0', ' ')

test('the picture says in words what it shows', () => {
  expect(draw(true, 4_000_000)).toContain(
    'aria-label="Waterfall of 4.00 s so far: DHCP 21.0 ms; Kernel start 979 ms; OS disk streaming 3.00 s, in progress"',
  )
  expect(draw(false, 4_000_000)).toContain('aria-label="Waterfall of 4.00 s: DHCP')
})

test('each phase has its name, its length and its bar; a silence is drawn with its length', () => {
  const picture = draw(true, 4_000_000)
  for (const text of ['>DHCP<', '>Kernel start<', '>OS disk streaming<', '>21.0 ms<', '>979 ms<', '>3.00 s<'])
    expect(picture).toContain(text)
  expect(picture).toContain('Idle gap of 300 ms')
  expect(picture).toContain('fill="var(--phase-stage2)"')
})

test('the device’s own steps are drawn below the phases with their names and lengths', () => {
  const picture = renderToStaticMarkup(
    createElement(Waterfall, {
      phases: [{ name: 'dhcp', startUs: 0, durationUs: 1_000_000, gaps: [] }],
      steps: [
        { group: 'firmware', name: 'firmware', startUs: -2_000_000, durationUs: 1_500_000 },
        { group: 'unit', name: '<b>.service', startUs: 500_000, durationUs: 250_000 },
      ],
      running: false,
      elapsedUs: 1_000_000,
    }),
  ).replaceAll('\u00a0', ' ')
  expect(picture).toContain('; 2 OS boot steps reported by the device"')
  for (const text of ['>Firmware<', '>Slowest units<', '>&lt;b&gt;.service<', '>1.50 s<', '>250 ms<', '>−2 s<'])
    expect(picture).toContain(text)
  expect(picture).toContain('fill="var(--step-unit)"')
})
