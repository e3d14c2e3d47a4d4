import { z } from 'zod'
import type { RouterInputs } from '../../lib/trpc'

export interface PlaceKind {
  /** The name of its id in the question. */
  value: Exclude<keyof RouterInputs['member']['explain'], 'userId'>
  label: string
  noun: 'farm' | 'site' | 'collection' | 'device' | 'edge' | 'vdisk' | 'store' | 'bootMenu' | 'schedule'
}

/** Objects that an explanation can be asked for, beside the whole organization. */
export const placeKinds: PlaceKind[] = [
  { value: 'farmId', label: 'Farm', noun: 'farm' },
  { value: 'siteId', label: 'Site', noun: 'site' },
  { value: 'collectionId', label: 'Collection', noun: 'collection' },
  { value: 'deviceId', label: 'Device', noun: 'device' },
  { value: 'edgeId', label: 'Edge', noun: 'edge' },
  { value: 'vdiskId', label: 'vDisk', noun: 'vdisk' },
  { value: 'storeId', label: 'Store', noun: 'store' },
  { value: 'menuId', label: 'Boot menu', noun: 'bootMenu' },
  { value: 'scheduleId', label: 'Schedule', noun: 'schedule' },
]

/** The page's filters in the URL. */
export const explainFilterShape = {
  member: z.uuid().optional(),
  kind: z.string().max(16).optional(),
  object: z.uuid().optional(),
}
