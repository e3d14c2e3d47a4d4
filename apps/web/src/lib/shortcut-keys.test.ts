import { expect, test } from 'vitest'
import { ShortcutKeys } from './shortcut-keys.ts'

function pressed(keys: string, { isTyping = false, withSingleKeys = true, stepMs = 100, more = {} } = {}) {
  const shortcuts = new ShortcutKeys()
  const modifiers = { ctrlKey: false, metaKey: false, altKey: false, isTyping, ...more }
  return [...keys].map((key, index) => shortcuts.press({ key, ...modifiers, atMs: index * stepMs }, withSingleKeys))
}

test('g and a letter within a moment open a place', () => {
  expect(pressed('gd')).toEqual([null, { kind: 'go', key: 'd' }])
  expect(pressed('gG')).toEqual([null, { kind: 'go', key: 'g' }])
  expect(pressed('gd', { stepMs: 1_501 })).toEqual([null, null])
  expect(pressed('gdd')).toEqual([null, { kind: 'go', key: 'd' }, null])
})

test('a slash and Ctrl-K open the palette, a question mark the help', () => {
  expect(pressed('/?')).toEqual([{ kind: 'palette' }, { kind: 'help' }])
  expect(pressed('k', { more: { ctrlKey: true } })).toEqual([{ kind: 'palette' }])
  expect(pressed('K', { more: { metaKey: true } })).toEqual([{ kind: 'palette' }])
  expect(pressed('k', { more: { ctrlKey: true, altKey: true } })).toEqual([null])
  expect(pressed('k')).toEqual([null])
})

test('in a field only Ctrl-K is a shortcut, and so it is where single keys are off', () => {
  for (const options of [{ isTyping: true }, { withSingleKeys: false }]) {
    expect(pressed('/?gd', options)).toEqual([null, null, null, null])
    expect(pressed('k', { ...options, more: { ctrlKey: true } })).toEqual([{ kind: 'palette' }])
  }
})
