'use client'

import Link from 'next/link'
import { usePathname } from 'next/navigation'
import { Icon } from '../../components/icon'
import { classNames } from '../../lib/class-names'
import { WaitingCount } from '../discovered/waiting-count'
import { useMay } from '../session/use-may'
import { type Place, placeOf, places } from './places'

export function Navigation({ onNavigate }: { onNavigate?: () => void }) {
  const pathname = usePathname()
  const current = placeOf(pathname)
  return (
    <nav aria-label="Main" className="min-h-0 overflow-y-auto">
      <ul className="flex flex-col gap-px">
        {places.map((place) => (
          <NavigationItem key={place.href} place={place} isCurrent={current === place} onNavigate={onNavigate} />
        ))}
      </ul>
    </nav>
  )
}

interface NavigationItemProps {
  place: Place
  isCurrent: boolean
  onNavigate: (() => void) | undefined
}

function NavigationItem({ place, isCurrent, onNavigate }: NavigationItemProps) {
  const may = useMay(place.permission ?? 'organization.read')
  if (place.permission && !may) return null
  return (
    <li>
      <Link
        href={place.href}
        aria-current={isCurrent ? 'page' : undefined}
        {...(onNavigate ? { onClick: onNavigate } : {})}
        className={classNames(
          'relative flex h-8 items-center gap-2.5 rounded-md px-2.5 text-sm transition-colors max-md:h-10',
          isCurrent
            ? 'bg-hover font-medium text-ink before:absolute before:top-2 before:bottom-2 before:left-0 before:w-0.5 before:rounded-full before:bg-(--phase-stage2)'
            : 'text-ink-soft hover:bg-hover hover:text-ink',
        )}
      >
        <Icon name={place.icon} />
        {place.title}
        {place.href === '/discovered' && <WaitingCount />}
      </Link>
    </li>
  )
}
