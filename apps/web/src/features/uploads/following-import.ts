import type { RouterInputs } from '../../lib/trpc'

type ImportInput = RouterInputs['version']['import']

/** The import that follows an upload: all of its input but the source. */
export type FollowingImport = Omit<
  ImportInput,
  'vdiskId' | 'sourcePath' | 'uploadId' | 'url' | 'sha256' | 'emptySizeBytes' | 'bootVersionId'
>

/** Reads one that was kept in the browser; null: it is no such thing. */
export function parseFollowingImport(value: unknown): FollowingImport | null {
  const edgeId = textOf(value, 'edgeId')
  if (edgeId === undefined) return null
  const [bootFiles, state, modules] = [textOf(value, 'bootFiles'), textOf(value, 'state'), fieldOf(value, 'modules')]
  return {
    edgeId,
    bootFiles: bootFiles === 'parent' || bootFiles === 'none' ? bootFiles : 'image',
    parentVersionId: textOf(value, 'parentVersionId') ?? null,
    commandLine: textOf(value, 'commandLine') ?? '',
    modules: Array.isArray(modules) ? modules.filter((one) => typeof one === 'string') : [],
    note: textOf(value, 'note') ?? '',
    state: state === 'released' ? state : 'test',
  }
}

function textOf(value: unknown, name: string): string | undefined {
  const text = fieldOf(value, name)
  return typeof text === 'string' ? text : undefined
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}
