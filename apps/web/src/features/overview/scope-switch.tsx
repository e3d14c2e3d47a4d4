'use client'

import { ObjectFilter } from '../../components/object-picker'
import { usePicker } from '../../lib/use-picker'
import type { Scope } from './overview-scope'

interface ScopeSwitchProps {
  scope: Scope
  site: { value: string | undefined; onChange: (site: string) => void }
  /** Also leaves the site, which may be another farm's. */
  onFarm: (farm: string) => void
}

/** The whole organization, a farm or a site. An organization with one farm and one site has nothing to choose. */
export function ScopeSwitch({ scope: { farmId, siteId }, site, onFarm }: ScopeSwitchProps) {
  const farms = usePicker('farm', {})
  const sites = usePicker('site', farmId ? { farmId } : {})
  if (farms.items.length < 2 && sites.items.length < 2 && !farmId && !siteId) return null
  return (
    <>
      <ObjectFilter
        label="Farm"
        picker={farms}
        value={farmId}
        chosen={farmId ? { value: farmId, label: 'Selected farm' } : null}
        onChange={onFarm}
      />
      <ObjectFilter
        label="Site"
        picker={sites}
        chosen={siteId ? { value: siteId, label: 'Selected site' } : null}
        {...site}
      />
    </>
  )
}
