import { Icon } from '../../components/icon'

/** What is no longer there of a boot whose detail is past its retention. */
export function DetailGone({ keptDays }: { keptDays: number }) {
  return (
    <section aria-label="Detail past its retention" className="flex gap-3 rounded-lg bg-hover px-4 py-3 text-ink-soft">
      <span className="pt-0.5">
        <Icon name="alert" />
      </span>
      <div className="min-w-0 text-sm">
        <p className="font-medium">The detail of this boot is past its retention.</p>
        <p className="mt-0.5">
          Details are kept for {keptDays} days. How the boot ended and when its phases began and ended is still here;
          their numbers, the device’s own steps, offers, packets and facts are gone.
        </p>
      </div>
    </section>
  )
}
